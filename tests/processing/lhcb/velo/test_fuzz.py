"""Damaged VELO data: whatever the bytes say, the results are possible ones and other events are left alone.

That kernels stay inside their buffers is shown by tests/processing/lhcb/test_sanitized_kernels.py.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.source_id import subdetector_of
from tests.processing.lhcb.damage import MFP_HEADER, VERSION_AT, fragment_places
from tests.processing.lhcb.velo.velo_chain import VeloChain, VeloEvent, limits_of

GEOMETRY = VeloGeometry.builtin()
N_EVENTS = 3


@cache
def sample(encoding: VeloEncoding) -> tuple[EncodedMep, VeloChain, list[VeloEvent]]:
    """A MEP of simulated events, a chain to run it on, and what undamaged events give."""
    mep = encode_mep(CHAIN, list(simulate_events(N_EVENTS, seed=5, geometry=GEOMETRY, nu=2.0, velo_banks=encoding)))
    chain = VeloChain(GEOMETRY, limits_of(mep))
    return mep, chain, chain.run(mep)


def velo_mfps(mep: EncodedMep) -> list[tuple[int, int]]:
    """(byte offset, bytes) of the MFPs of the VELO."""
    velo = (SubDetector.VELO_A, SubDetector.VELO_C)
    return [(offset, size) for source, offset, size in mep.fragments if subdetector_of(source) in velo]


def assert_events_are_possible(events: list[VeloEvent]) -> None:
    for event in events:
        assert event.module_pair_offset[-1] == len(event.ids)
        assert np.all(np.diff(event.module_pair_offset.astype(int)) >= 0)
        assert np.all(np.isfinite(event.hits()))
        for track in event.tracks:
            assert 3 <= len(track) <= 26
            assert np.all(track < len(event.ids))


@settings(max_examples=100)
@given(st.sampled_from(["retina", "superpixel"]), st.integers(0, N_EVENTS - 1), st.integers(0, 2**32 - 1))
def test_damaged_payloads_harm_no_other_event(encoding: VeloEncoding, victim: int, seed: int) -> None:
    mep, chain, expected = sample(encoding)
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    mfps = velo_mfps(mep)
    for index in rng.integers(0, len(mfps), 20):
        start, size = fragment_places(mep, mfps[index][0], victim)
        damaged = rng.integers(0, 256, size, dtype=np.uint8)
        if rng.random() < 0.5:
            damaged[4:] = data[start + 4 : start + size]
        data[start : start + size] = np.where(rng.random(size) < rng.random(), damaged, data[start : start + size])
    events = chain.run(replace(mep, data=data))
    assert_events_are_possible(events)
    for event in range(N_EVENTS):
        if event != victim:
            assert events[event].same_as(expected[event])


@settings(max_examples=150)
@given(st.sampled_from(["retina", "superpixel"]), st.integers(0, 2**32 - 1))
def test_damaged_headers_types_sizes_and_versions_are_survived(encoding: VeloEncoding, seed: int) -> None:
    mep, chain, _ = sample(encoding)
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    mfps = velo_mfps(mep)
    for index in rng.integers(0, len(mfps), rng.integers(1, 40)):
        offset, size = mfps[index]
        kind = rng.integers(0, 4)
        if kind == 0:
            data[offset + VERSION_AT] = rng.choice([0, 1, 2, 3, 4, 5, 255])
        elif kind == 1:
            data[offset + MFP_HEADER + rng.integers(0, N_EVENTS)] = rng.choice([63, 73, 16, 89, 254, 255])
        elif kind == 2:
            data[offset + MFP_HEADER + 4 + rng.integers(0, 2 * N_EVENTS)] = rng.integers(0, 256)
        else:
            at = offset + MFP_HEADER + rng.integers(0, size - MFP_HEADER)
            data[at] = rng.integers(0, 256)
    assert_events_are_possible(chain.run(replace(mep, data=data)))


def filled(mep: EncodedMep, word: int) -> NDArray[np.uint8]:
    """The MEP with all payload words of the VELO, counts left alone, set to one value."""
    data = mep.data.copy()
    for offset, _ in velo_mfps(mep):
        for event in range(N_EVENTS):
            start, size = fragment_places(mep, offset, event)
            data[start + 4 : start + size].view("<u4")[:] = word
    return data


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
@pytest.mark.parametrize("word", [0, 1, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x00AAAAAA, 0x55555555])
def test_stuck_words_are_survived(encoding: VeloEncoding, word: int) -> None:
    mep, chain, expected = sample(encoding)
    assert_events_are_possible(chain.run(replace(mep, data=filled(mep, word))))
    again = chain.run(mep)
    assert all(event.same_as(other) for event, other in zip(again, expected, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_instead_of_banks_are_survived(seed: int) -> None:
    for encoding in ("retina", "superpixel"):
        mep, chain, _ = sample(encoding)
        rng = np.random.default_rng(seed)
        data = mep.data.copy()
        for offset, size in velo_mfps(mep):
            data[offset + MFP_HEADER : offset + size] = rng.integers(0, 256, size - MFP_HEADER, dtype=np.uint8)
        assert_events_are_possible(chain.run(replace(mep, data=data)))
