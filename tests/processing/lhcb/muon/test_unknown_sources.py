"""Muon banks of sources that do not exist."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.processing.lhcb.muon.fuzzed_muon import VERSIONS, muon_batch, sample


@pytest.mark.parametrize("version", VERSIONS)
def test_sources_that_do_not_exist_are_flagged_and_give_no_digits(version: int) -> None:
    batch = muon_batch(version)
    fragments = [(source & 0xF800 | 0xFF, offset, size) for source, offset, size in batch.mep.fragments]
    events = replace(batch, mep=replace(batch.mep, fragments=tuple(fragments))).run()
    assert [event.flags for event in events] == [1] * batch.mep.n_events
    assert [len(event.hits["x"]) for event in events] == [0] * batch.mep.n_events
    expected = sample(version).run(batch.mep)
    assert all(len(event.hits["x"]) > 0 for event in expected)
