"""Damaged SciFi data: whatever the bytes say, kernels stay inside their buffers and other events are left alone.

With the sanitized build (cmake -DHLTNODE_SANITIZE=ON) these tests prove the first half of that sentence.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.source_id import subdetector_of
from tests.processing.framework.kernel_runner import with_block_size
from tests.processing.lhcb.scifi.scifi_banks import as_version, simulated_events
from tests.processing.lhcb.scifi.scifi_chain import SciFiChain, SciFiEvent, limits_of, scifi_chain
from tests.processing.lhcb.scifi.scifi_reference import Reference

GEOMETRY = SciFiGeometry.builtin()
N_EVENTS = 3
MFP_HEADER = 20
VERSION_AT = 19
VERSIONS = (4, 5, 6)


@cache
def sample(version: int) -> tuple[EncodedMep, SciFiChain, list[SciFiEvent]]:
    """A MEP of simulated events, a chain to run it on, and what undamaged events give."""
    mep = encode_mep(scifi_chain(), [as_version(event, version) for event in simulated_events(N_EVENTS)])
    chain = SciFiChain(GEOMETRY, limits_of(mep))
    return mep, chain, chain.run(mep)


def scifi_mfps(mep: EncodedMep) -> list[tuple[int, int]]:
    """(byte offset, bytes) of the MFPs of the SciFi."""
    sides = (SubDetector.SCIFI_A, SubDetector.SCIFI_C)
    return [(offset, size) for source, offset, size in mep.fragments if subdetector_of(source) in sides]


def fragment_places(mep: EncodedMep, mfp: int, event: int) -> tuple[int, int]:
    """Byte offset and size of the fragment of an event in the MFP that begins at byte `mfp`."""
    n = mep.n_events
    sizes_at = mfp + MFP_HEADER + (n + 3) // 4 * 4
    sizes = mep.data[sizes_at : sizes_at + 2 * n].view("<u2")
    align = 1 << int(mep.data[mfp + 18])
    first = sizes_at + (2 * n + 3) // 4 * 4
    return first + sum(-(-int(size) // align) * align for size in sizes[:event]), int(sizes[event])


def assert_events_are_possible(events: list[SciFiEvent]) -> None:
    for event in events:
        offsets = event.zone_offset.astype(int)
        assert offsets[0] == 0
        assert set(offsets[24:].tolist()) == {len(event.ids)}
        assert np.all(np.diff(offsets) >= 0)
        assert np.all(np.isfinite(event.x))
        assert np.all(event.mat() < 1536)
        assert np.all(event.pseudo_size() <= 8)
        assert np.all((event.ids >> 9 & 0x7FF) - 512 == event.mat())
        assert event.zone().tolist() == (2 * ((event.ids >> 16 & 0xF).astype(int) - 4) + (event.ids >> 15 & 1)).tolist()
        for first, last in itertools.pairwise(offsets):
            assert np.all(np.diff(event.x[first:last]) > 0)
        if event.flags & EventFlag.OVERFLOW:
            assert len(event.ids) == 0


@settings(max_examples=60)
@given(st.sampled_from(VERSIONS), st.integers(0, N_EVENTS - 1), st.integers(0, 2**32 - 1))
def test_damaged_payloads_harm_no_other_event(version: int, victim: int, seed: int) -> None:
    mep, chain, expected = sample(version)
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    mfps = scifi_mfps(mep)
    for index in rng.integers(0, len(mfps), 40):
        start, size = fragment_places(mep, mfps[index][0], victim)
        damaged = rng.integers(0, 256, size, dtype=np.uint8)
        data[start : start + size] = np.where(rng.random(size) < rng.random(), damaged, data[start : start + size])
    events = chain.run(replace(mep, data=data))
    assert_events_are_possible(events)
    for event in range(N_EVENTS):
        if event != victim:
            assert events[event].same_as(expected[event])


@pytest.mark.parametrize("seed", range(6))
def test_many_threads_make_the_same_of_damaged_data(seed: int) -> None:
    mep, _, _ = sample(VERSIONS[seed % 3])
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    mfps = scifi_mfps(mep)
    for index in rng.integers(0, len(mfps), 60):
        start, size = fragment_places(mep, mfps[index][0], int(rng.integers(0, N_EVENTS)))
        words = data[start : start + size // 2 * 2].view("<u2")
        damaged = rng.random(len(words)) < 0.3
        words[damaged] ^= (1 << rng.integers(0, 16, int(damaged.sum()))).astype(np.uint16)
    reference = Reference(GEOMETRY, replace(mep, data=data))
    assert all(event.flags == EventFlag.BANK_ERROR for event in reference.events)
    assert reference.differences(with_block_size(64, backward=seed % 2 == 1, kernels=scifi_chain().kernels)) == []


@settings(max_examples=80)
@given(st.sampled_from(VERSIONS), st.integers(0, 2**32 - 1))
def test_damaged_headers_types_sizes_and_versions_are_survived(version: int, seed: int) -> None:
    mep, chain, _ = sample(version)
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    mfps = scifi_mfps(mep)
    for index in rng.integers(0, len(mfps), rng.integers(1, 40)):
        offset, size = mfps[index]
        kind = rng.integers(0, 4)
        if kind == 0:
            data[offset + VERSION_AT] = rng.choice([0, 3, 4, 5, 6, 7, 8, 255])
        elif kind == 1:
            data[offset + MFP_HEADER + rng.integers(0, N_EVENTS)] = rng.choice([64, 66, 73, 16, 89, 254, 255])
        elif kind == 2:
            data[offset + MFP_HEADER + 4 + rng.integers(0, 2 * N_EVENTS)] = rng.integers(0, 256)
        else:
            data[offset + MFP_HEADER + rng.integers(0, size - MFP_HEADER)] = rng.integers(0, 256)
    assert_events_are_possible(chain.run(replace(mep, data=data)))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("word", [0, 1, 2, 3, 0xFFFC, 0xFFFF, 0xAAAA, 0x5555])
def test_stuck_words_are_survived(version: int, word: int) -> None:
    mep, chain, expected = sample(version)
    data = mep.data.copy()
    for offset, _ in scifi_mfps(mep):
        for event in range(N_EVENTS):
            start, size = fragment_places(mep, offset, event)
            data[start + 4 : start + size].view("<u2")[:] = word
    assert_events_are_possible(chain.run(replace(mep, data=data)))
    again = chain.run(mep)
    assert all(event.same_as(other) for event, other in zip(again, expected, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_instead_of_banks_are_survived(seed: int) -> None:
    mep, chain, _ = sample(5)
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    for offset, size in scifi_mfps(mep):
        data[offset + MFP_HEADER : offset + size] = rng.integers(0, 256, size - MFP_HEADER, dtype=np.uint8)
    assert_events_are_possible(chain.run(replace(mep, data=data)))


@pytest.mark.parametrize("seed", range(3))
def test_rising_words_with_random_edges_are_survived(seed: int) -> None:
    """Words that pass every check but that of the number of hits."""
    mep, chain, _ = sample(5)
    rng = np.random.default_rng(seed)
    data = mep.data.copy()
    for offset, _ in scifi_mfps(mep):
        for event in range(N_EVENTS):
            start, size = fragment_places(mep, offset, event)
            n = min((size - 4) // 2, 60)
            channels = np.sort(rng.choice(2048, n, replace=False))
            data[start + 4 : start + 4 + 2 * n].view("<u2")[:] = channels << 2 | rng.integers(0, 4, n)
    assert_events_are_possible(chain.run(replace(mep, data=data)))
