"""Growth of the streaming chains with the rate: figures of the report."""

from __future__ import annotations

import pytest

from benchmarks.detectors import stream_growth
from hltnode.processing.km3net.chain import CHAIN


def test_exponents_are_those_of_all_kernels_against_rate_and_hits() -> None:
    streams = [stream_growth.Stream(rate, hits, None) for rate, hits in ((1.0, 1.0), (4.0, 2.0))]  # type: ignore[arg-type]
    rows = list(stream_growth.results("mu3e", streams, {"one": [1.0, 4.0], "two": [3.0, 12.0]}))
    assert stream_growth.summary(rows) == {"mu3e_rate": pytest.approx(1.0), "mu3e_hits": pytest.approx(2.0)}
    by_name = {row.name: row for row in rows}
    assert by_name["mu3e: all kernels at 4 Hz"].value == 16.0
    assert by_name["mu3e: one, exponent of rate"].reached is None
    assert by_name["mu3e: all kernels, exponent of rate"].reached


def test_hits_and_candidates_are_means_of_a_sub_slice() -> None:
    streams = list(stream_growth.km3net_streams((27_500.0, 220_000.0), 6))
    found = stream_growth.counts_of(CHAIN, streams)
    assert [len(counts) for counts in found.values()] == [2, 2, 2]
    for stream, hits in zip(streams, found["km3net_hits"], strict=True):
        assert hits == pytest.approx(stream.hits, rel=0.02)
    few, many = found["candidates_found"]
    assert many > 8 * few
