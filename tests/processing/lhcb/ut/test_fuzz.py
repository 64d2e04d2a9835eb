"""Damaged UT data: whatever the bytes say, kernels stay inside their buffers and other events are left alone.

With the sanitized build (cmake -DHLTNODE_SANITIZE=ON) these tests prove the first half of that sentence.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.source_id import subdetector_of
from tests.processing.lhcb.damage import MFP_HEADER, VERSION_AT, fragment_places
from tests.processing.lhcb.ut.test_decoding import simulated
from tests.processing.lhcb.ut.ut_chain import Detector, UtChain, UtEvent, limits_of, ut_chain

N_EVENTS = 3
VERSIONS = (3, 4)


@cache
def sample(version: int) -> tuple[EncodedMep, UtChain, list[UtEvent]]:
    """A MEP of simulated events, a chain to run it on, and what undamaged events give."""
    mep = encode_mep(ut_chain(), simulated(N_EVENTS, version=version))
    chain = UtChain(Detector.builtin(), limits_of(mep))
    return mep, chain, chain.run(mep)


def ut_mfps(mep: EncodedMep) -> list[tuple[int, int]]:
    """(byte offset, bytes) of the MFPs of the UT."""
    ut = (SubDetector.UT_A, SubDetector.UT_C)
    return [(offset, size) for source, offset, size in mep.fragments if subdetector_of(source) in ut]


def assert_events_are_possible(events: list[UtEvent]) -> None:
    for event in events:
        n_hits = len(event.hits["id"])
        for offset in (event.group_offset, event.sector_offset):
            assert np.all(np.diff(offset.astype(int)) >= 0)
            assert offset[-1] == n_hits
        for name in ("x", "z", "y_begin", "y_end", "weight"):
            assert np.all(np.isfinite(event.hits[name]))
        hits = event.tracks["hits"]
        assert np.all((hits < n_hits) | (hits == 0xFFFF))
        assert np.all((hits < n_hits).sum(axis=1) == event.tracks["hit_count"])
        assert np.all(event.tracks["hit_count"] >= 3)
        assert np.all(np.diff(event.tracks["velo_track"].astype(int)) > 0)
        assert np.all(np.isfinite(event.tracks["qop"]))


@settings(max_examples=60)
@given(st.sampled_from(VERSIONS), st.integers(0, N_EVENTS - 1), st.integers(0, 2**32 - 1))
def test_damaged_payloads_harm_no_other_event(version: int, victim: int, seed: int) -> None:
    mep, chain, expected = sample(version)
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    mfps = ut_mfps(mep)
    for index in rng.integers(0, len(mfps), 20):
        start, size = fragment_places(mep, mfps[index][0], victim)
        damaged = rng.integers(0, 256, size, dtype=np.uint8)
        if rng.random() < 0.5:
            damaged[8:] = data[start + 8 : start + size]
        data[start : start + size] = np.where(rng.random(size) < rng.random(), damaged, data[start : start + size])
    events = chain.run(replace(mep, data=data))
    assert_events_are_possible(events)
    for event in range(N_EVENTS):
        if event != victim:
            assert events[event].same_as(expected[event])


@settings(max_examples=80)
@given(st.sampled_from(VERSIONS), st.integers(0, 2**32 - 1))
def test_damaged_headers_types_sizes_and_versions_are_survived(version: int, seed: int) -> None:
    mep, chain, _ = sample(version)
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    mfps = ut_mfps(mep)
    for index in rng.integers(0, len(mfps), rng.integers(1, 40)):
        offset, size = mfps[index]
        kind = rng.integers(0, 4)
        if kind == 0:
            data[offset + VERSION_AT] = rng.choice([0, 1, 2, 3, 4, 5, 255])
        elif kind == 1:
            data[offset + MFP_HEADER + rng.integers(0, N_EVENTS)] = rng.choice([66, 73, 16, 89, 254, 255])
        elif kind == 2:
            data[offset + MFP_HEADER + 4 + rng.integers(0, 2 * N_EVENTS)] = rng.integers(0, 256)
        else:
            data[offset + MFP_HEADER + rng.integers(0, size - MFP_HEADER)] = rng.integers(0, 256)
    assert_events_are_possible(chain.run(replace(mep, data=data)))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("byte", [0, 1, 0x55, 0x7F, 0x80, 0xAA, 0xFE, 0xFF])
def test_stuck_bytes_are_survived(version: int, byte: int) -> None:
    mep, chain, expected = sample(version)
    data = mep.data.copy()
    for offset, _ in ut_mfps(mep):
        for event in range(N_EVENTS):
            start, size = fragment_places(mep, offset, event)
            data[start : start + size] = byte
    assert_events_are_possible(chain.run(replace(mep, data=data)))
    again = chain.run(mep)
    assert all(event.same_as(other) for event, other in zip(again, expected, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_instead_of_banks_are_survived(seed: int) -> None:
    for version in VERSIONS:
        mep, chain, _ = sample(version)
        rng = np.random.default_rng(seed)
        data = mep.data.copy()
        for offset, size in ut_mfps(mep):
            data[offset + MFP_HEADER : offset + size] = rng.integers(0, 256, size - MFP_HEADER, dtype=np.uint8)
        assert_events_are_possible(chain.run(replace(mep, data=data)))
