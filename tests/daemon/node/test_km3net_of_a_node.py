"""A node of the chain `km3net` over TCP: its windows and their hits are those of brute force over the stream."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.km3net.chain import CHAIN
from hltnode.processing.km3net.detector_constants import MARGIN_BEFORE, MARGIN_BEHIND, SUB_SLICE_NS
from hltnode.processing.km3net.geometry.pmt_table import km3net_tower
from hltnode.processing.km3net.hits.collections import WINDOW
from hltnode.processing.km3net.offline.simulation import sample as sample_module
from hltnode.processing.km3net.offline.simulation.sample import (
    TelescopeOptions,
    TelescopeSample,
    sub_slice_banks,
)
from hltnode.processing.km3net.offline.simulation.stream import source_of_pmts
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.km3net.hit_banks import KM3NET_SUBDETECTOR, hits_of
from hltnode.protocol.raw_data.source_id import source_id
from tests.daemon.fakes import RUN, make_config
from tests.daemon.node.kept_windows import check_records, keep_windows
from tests.processing.km3net.trigger_oracle import expected

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

N, CORE = 30, 3
SAMPLE = TelescopeSample(
    SampleRequest(seed=1, run=RUN, file_format="mep"), TelescopeOptions(muon_rate=40_000.0, radius=40.0)
)


def found_by_brute_force(hits: list[NDArray[np.void]]) -> NDArray[np.int64]:
    """Start, end, lines and candidates of each window of a stream, i64[windows, 4]."""
    rows = [np.empty((0, 4), np.int64)]
    for number, here in enumerate(hits):
        behind = hits[number + 1] if number + 1 < N else here[:0]
        of = expected(km3net_tower(), here, behind).windows
        assert of.dtype == WINDOW.dtype
        origin = number * SUB_SLICE_NS
        times = (np.maximum(of[name].astype(np.int64) + origin, 0) for name in ("start_ns", "end_ns"))
        rows.append(np.column_stack([*times, of["lines"], of["candidates"]]).astype(np.int64))
    return np.concatenate(rows)


def cut(hits: NDArray[np.void], times: NDArray[np.int64]) -> list[NDArray[np.void]]:
    """HIT[hits] of each sub-slice of a stream."""
    parts = []
    for number in range(N):
        inside = times // SUB_SLICE_NS == number
        part = hits[inside].copy()
        part["time"] = times[inside] - number * SUB_SLICE_NS
        parts.append(part)
    return parts


def with_clocks(
    offsets: dict[int, int], hits: NDArray[np.void], times: NDArray[np.int64], patch: pytest.MonkeyPatch
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Let the simulated sources send by clocks that need these offsets; returns the hits that they send at all."""
    made = sample_module._stream_of(SAMPLE)
    of_floors = np.array([offsets.get(source_id(KM3NET_SUBDETECTOR, floor), 0) for floor in range(14)])
    sent = times - of_floors[source_of_pmts(made.detector)[hits["pmt"]]]
    is_sent = (sent >= 0) & (sent < N * SUB_SLICE_NS)
    parts = cut(hits[is_sent], sent[is_sent])
    patch.setattr(sample_module, "sub_slice_banks", lambda _, number: sample_module.banks_of_hits(made, parts[number]))
    return hits[is_sent], times[is_sent]


@pytest.mark.parametrize("offsets", [{}, {2048: 75, 2051: -20_000, 2056: 20_999, 2061: -1}], ids=["right", "wrong"])
async def test_a_node_keeps_the_windows_and_hits_of_brute_force(
    offsets: dict[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = [hits_of(sub_slice_banks(SAMPLE, number)) for number in range(N)]
    hits = np.concatenate(true)
    times = np.concatenate([SUB_SLICE_NS * i + each["time"].astype(np.int64) for i, each in enumerate(true)])
    if offsets:
        hits, times = with_clocks(offsets, hits, times, monkeypatch)
    of_sub_slices = cut(hits, times)
    windows = found_by_brute_force(of_sub_slices)
    assert len(windows) > 10

    n_slices, n_events = N // CORE, MARGIN_BEFORE + CORE + MARGIN_BEHIND
    config = make_config(tmp_path, trigger={"chain": "km3net"}, streaming={"clock_offsets_ns": offsets})
    kept = await keep_windows(CHAIN, config, [SAMPLE.encode_slice(i, CORE, N) for i in range(n_slices)], n_events)
    assert (kept.moved > 0) == bool(offsets)
    published = [kept.published[name] for name in ("start_ns", "end_ns", "lines", "candidates")]
    np.testing.assert_array_equal(np.column_stack(published), windows)
    check_records(kept, windows, times, hits)
