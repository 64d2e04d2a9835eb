"""Damaged muon data: whatever the bytes say, kernels stay inside their buffers and other events are left alone.

With the sanitized build (cmake -DHLTNODE_SANITIZE=ON) these tests prove the first half of that sentence.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.protocol.lhcb.banks.muon import decode_muon
from tests.processing.lhcb.damage import MFP_HEADER, VERSION_AT, fragment_places
from tests.processing.lhcb.muon.muon_chain import MuonBatch, MuonEvent, encode_mep
from tests.processing.lhcb.muon.muon_samples import (
    BUILTIN,
    as_links,
    banks_of,
    link_banks_of,
    links_geometry,
    random_digits,
    simulated_events,
)
from tests.processing.lhcb.muon.test_is_muon import random_tracks

N_EVENTS = 3
VERSIONS = (2, 3)


@cache
def sample(version: int) -> tuple[MuonBatch, list[MuonEvent]]:
    """A batch of muon banks with tracks, and what undamaged events give."""
    rng = np.random.default_rng(12)
    digits = [decode_muon(simulated_events(6)[0]), random_digits(rng, 400), random_digits(rng, 60)]
    if version == 2:
        events = [banks_of(of_event) for of_event in digits]
    else:
        events = [link_banks_of(as_links(of_event)) for of_event in digits]
    tracks = [random_tracks(rng, 40) for _ in digits]
    batch = MuonBatch(encode_mep(events), BUILTIN if version == 2 else links_geometry(), tracks)
    return batch, batch.run()


def assert_events_are_possible(events: list[MuonEvent]) -> None:
    for event in events:
        offsets = event.station_offset.astype(int)
        assert (np.diff(offsets) >= 0).all()
        assert offsets[-1] == len(event.hits["x"])
        for name in ("x", "y", "z", "dx", "dy"):
            assert np.isfinite(event.hits[name]).all()
        assert (event.hits["tile"] != 0).all()
        near = event.muon_hits[event.muon_hits != 0xFFFF]
        assert (near < offsets[-1]).all()
        assert np.isfinite(event.chi2).all()


def with_data(batch: MuonBatch, data: np.ndarray) -> MuonBatch:
    return replace(batch, mep=replace(batch.mep, data=data))


def mfps(mep: EncodedMep) -> list[tuple[int, int]]:
    """(byte offset, bytes) of each MFP."""
    return [(offset, size) for _, offset, size in mep.fragments]


@settings(max_examples=25)
@given(st.sampled_from(VERSIONS), st.integers(0, N_EVENTS - 1), st.integers(0, 2**32 - 1))
def test_damaged_payloads_harm_no_other_event(version: int, victim: int, seed: int) -> None:
    batch, expected = sample(version)
    rng = np.random.default_rng(seed)
    data = batch.mep.data.copy()
    places = mfps(batch.mep)
    for index in rng.integers(0, len(places), 8):
        start, size = fragment_places(batch.mep, places[index][0], victim)
        damaged = rng.integers(0, 256, size, dtype=np.uint8)
        data[start : start + size] = np.where(rng.random(size) < rng.random(), damaged, data[start : start + size])
    events = with_data(batch, data).run()
    assert_events_are_possible(events)
    for event in range(N_EVENTS):
        if event != victim:
            assert events[event].same_as(expected[event])


@settings(max_examples=40)
@given(st.sampled_from(VERSIONS), st.integers(0, 2**32 - 1))
def test_damaged_headers_types_sizes_and_versions_are_survived(version: int, seed: int) -> None:
    batch, _ = sample(version)
    rng = np.random.default_rng(seed)
    data = batch.mep.data.copy()
    places = mfps(batch.mep)
    for index in rng.integers(0, len(places), rng.integers(1, 20)):
        offset, size = places[index]
        kind = rng.integers(0, 4)
        if kind == 0:
            data[offset + VERSION_AT] = rng.choice([0, 1, 2, 3, 4, 255])
        elif kind == 1:
            data[offset + MFP_HEADER + rng.integers(0, N_EVENTS)] = rng.choice([13, 63, 16, 89, 254, 255])
        elif kind == 2:
            data[offset + MFP_HEADER + 4 + rng.integers(0, 2 * N_EVENTS)] = rng.integers(0, 256)
        else:
            data[offset + MFP_HEADER + rng.integers(0, size - MFP_HEADER)] = rng.integers(0, 256)
    assert_events_are_possible(with_data(batch, data).run())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("byte", [0, 1, 0x10, 0x20, 0x60, 0x6F, 0x80, 0xF0, 0xFF, 0x55])
def test_stuck_bytes_are_survived(version: int, byte: int) -> None:
    batch, expected = sample(version)
    data = batch.mep.data.copy()
    for offset, _ in mfps(batch.mep):
        for event in range(N_EVENTS):
            start, size = fragment_places(batch.mep, offset, event)
            data[start + (version == 3) : start + size] = byte
    assert_events_are_possible(with_data(batch, data).run())
    assert all(event.same_as(other) for event, other in zip(batch.run(), expected, strict=True))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("version", VERSIONS)
def test_random_bytes_instead_of_banks_are_survived(version: int, seed: int) -> None:
    batch, _ = sample(version)
    rng = np.random.default_rng(seed)
    data = batch.mep.data.copy()
    for offset, size in mfps(batch.mep):
        data[offset + MFP_HEADER : offset + size] = rng.integers(0, 256, size - MFP_HEADER, dtype=np.uint8)
    assert_events_are_possible(with_data(batch, data).run())


@pytest.mark.parametrize("version", VERSIONS)
def test_sources_that_do_not_exist_are_flagged_and_give_no_digits(version: int) -> None:
    batch, expected = sample(version)
    fragments = [(source & 0xF800 | 0xFF, offset, size) for source, offset, size in batch.mep.fragments]
    events = replace(batch, mep=replace(batch.mep, fragments=tuple(fragments))).run()
    assert [event.flags for event in events] == [1] * N_EVENTS
    assert [len(event.hits["x"]) for event in events] == [0] * N_EVENTS
    assert all(len(event.hits["x"]) > 0 for event in expected)
