"""SciFi banks to sorted hits: the kernels agree with the oracle on real, simulated and made-up banks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.lhcb.truth import decode_particles
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import source_id
from tests.processing.framework.kernel_runner import with_block_size
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.processing.lhcb.scifi.scifi_banks import Word, as_version, bank_of, payload_of, real_events, simulated_events
from tests.processing.lhcb.scifi.scifi_chain import (
    SciFiChain,
    SciFiEvent,
    limits_of,
    run_scifi,
    scifi_chain,
    uncut_chain,
    with_constants,
)
from tests.processing.lhcb.scifi.scifi_oracle import expected_hits, n_links
from tests.processing.lhcb.scifi.scifi_reference import Reference
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import CUDA_VERSION, machine_of
from tests.ptx.nvrtc import ptx_of, resources
from tests.ptx.occupancy import MULTIPROCESSORS
from tests.ptx.parser import Module, parse

GEOMETRY = SciFiGeometry.builtin()
SPARE_HITS = 64
"""Hits for which an event has room in addition to its words, in hit_offsets.cuh."""
ACCURACY = 3e-4
"""mm; float32 against float64 at 3 m, and at 9 m in z."""


def encode(events: Sequence[Sequence[RawBank]]) -> EncodedMep:
    return encode_mep(scifi_chain(), events)


def assert_hits_are_expected(
    event: SciFiEvent, banks: Sequence[RawBank], geometry: SciFiGeometry, *, lossy: bool = False
) -> None:
    """Check for identical ids, mats, pseudo-sizes and zones in identical order, and positions in float32 precision."""
    expected = expected_hits(banks, geometry, lossy=lossy)
    assert event.flags == expected.flags
    assert event.ids.tolist() == expected.hits.lhcb_id.tolist()
    assert event.zone_offset.tolist() == expected.zone_offset().tolist()
    assert event.mat().tolist() == expected.hits.mat.tolist()
    assert event.pseudo_size().tolist() == expected.pseudo_size.tolist()
    np.testing.assert_allclose(event.x, expected.hits.x, atol=ACCURACY, rtol=0)
    np.testing.assert_allclose(event.z, expected.hits.z, atol=ACCURACY, rtol=0)
    for first, last in zip(event.zone_offset[:24], event.zone_offset[1:25], strict=True):
        assert np.all(np.diff(event.x[first:last]) > 0)


@pytest.fixture(scope="module")
def real_geometry(shared: Path) -> SciFiGeometry:
    return SciFiGeometry.load(shared / "data" / "lhcb-geometry")


def test_hits_of_the_real_events_are_those_of_the_oracle(shared: Path, real_geometry: SciFiGeometry) -> None:
    banks = real_events(shared)
    events = run_scifi(encode(banks), real_geometry)
    for event, of_event in zip(events, banks, strict=True):
        assert_hits_are_expected(event, of_event, real_geometry)
    assert [len(event.ids) for event in events] == [6488, 2226, 2494, 3112, 3731, 2210, 4297]


@pytest.mark.parametrize("version", [4, 6])
def test_the_words_of_the_real_events_are_read_by_the_rule_of_the_version(
    version: int, shared: Path, real_geometry: SciFiGeometry
) -> None:
    banks = [as_version(event, version) for event in real_events(shared)]
    for event, of_event in zip(run_scifi(encode(banks), real_geometry), banks, strict=True):
        assert_hits_are_expected(event, of_event, real_geometry)


def test_lossy_hits_are_the_words(shared: Path, real_geometry: SciFiGeometry) -> None:
    banks = real_events(shared)
    lossy = with_constants(uncut_chain(), scifi_decode_clusters={"lossy": 1})
    events = run_scifi(encode(banks), real_geometry, lossy)
    for event, of_event in zip(events, banks, strict=True):
        assert_hits_are_expected(event, of_event, real_geometry, lossy=True)
    assert [len(event.ids) for event in events] == [7187, 2442, 2726, 3344, 4078, 2423, 4706]
    assert sum(len(event.ids) for event in events) == 26_906


def test_spot_values_of_event_6002(shared: Path, real_geometry: SciFiGeometry) -> None:
    banks = as_version(real_events(shared)[1], 4)
    (event,) = run_scifi(encode([banks]), real_geometry)
    for channel, x, z, zone, size in (
        (0x40020, -518.1100, 7826.0993, 0, 4),
        (0x40073, -497.2650, None, 0, 4),
        (0xD8FA9, -557.4924, 9262.8995, 19, None),
    ):
        (at,) = np.flatnonzero(event.ids == 5 << 28 | channel)
        assert event.x[at] == pytest.approx(x, abs=ACCURACY)
        assert z is None or event.z[at] == pytest.approx(z, abs=1e-3)
        assert event.zone()[at] == zone
        assert size is None or event.pseudo_size()[at] == size
        assert event.mat()[at] == (channel >> 9) - 512


@pytest.mark.physics
def test_every_true_hit_of_the_real_events_is_found(shared: Path, real_geometry: SciFiGeometry) -> None:
    banks = real_events(shared)
    n_true = n_found = 0
    for event, of_event in zip(run_scifi(encode(banks), real_geometry), banks, strict=True):
        true = [lhcb_id for particle in decode_particles(of_event) for lhcb_id in particle.scifi_ids]
        n_true += len(true)
        n_found += int(np.isin(true, event.ids).sum())
    assert (n_true, n_found) == (22961, 22961)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_hits_of_simulated_events_are_those_of_the_oracle(version: int) -> None:
    banks = [as_version(event, version) for event in simulated_events(4)]
    for event, of_event in zip(run_scifi(encode(banks), GEOMETRY), banks, strict=True):
        assert_hits_are_expected(event, of_event, GEOMETRY)
        assert len(event.ids) > 0


@cache
def many_kinds() -> Reference:
    """Simulated events of the three versions' words, one with damaged banks, empty ones, one without any bank."""
    first, second, third = simulated_events(3)
    damaged = [bank_of([(0, 9, 0, 0), (0, 3, 0, 0)], 9), bank_of([(1, 5, 1, 1), (1, 50, 0, 1)], 8)]
    wide = [bank_of([(link, cell, 1, 1) for link in range(16) for cell in (3, 120)], number) for number in range(20)]
    events = [first, second, damaged, [], third, [bank_of([])], wide, [bank_of([(3, 3, 0, 0)], 200)]]
    return Reference(GEOMETRY, encode(events))


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 64, 100, 256])
def test_results_do_not_depend_on_the_threads(block_size: int, backward: bool) -> None:
    assert [event.flags for event in many_kinds().events] == [
        0, 0, EventFlag.BANK_ERROR, 0, 0, 0, EventFlag.OVERFLOW, 0
    ]  # fmt: skip
    launch = with_block_size(block_size, backward=backward, kernels=scifi_chain().kernels)
    assert many_kinds().differences(launch) == []


@cache
def device_code() -> Module:
    return parse(ptx_of(nvrtc_of(CUDA_VERSION), scifi_chain().kernels, "90"))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [32, 100, 256])
def test_device_code_gives_the_same_bits_and_no_access_is_unordered(block_size: int, backward: bool) -> None:
    machine = machine_of(device_code(), backward=backward)
    launcher = PtxLauncher(machine, block_size)
    assert few_words().differences(launcher, machine.allocate) == []
    assert launcher.conflicts == []


@cache
def few_words() -> Reference:
    rng = np.random.default_rng(3)
    events = []
    for n_banks in (3, 0, 12, 1):
        banks = []
        for number in rng.choice(240, n_banks, replace=False):
            channels = np.sort(rng.choice(n_links(int(number)) * 128, 12, replace=False))
            edges = rng.integers(0, 2, 12)
            words = [
                (int(c) >> 7, int(c) & 127, int(rng.integers(2)), int(e)) for c, e in zip(channels, edges, strict=True)
            ]
            banks.append(bank_of(words, int(number)))
        events.append(banks)
    damaged = [bank_of(GOOD, 3), bank_of([(0, 9, 0, 0), (0, 3, 0, 0)], 9), bank_of([(40, 3, 0, 0)], 10)]
    crowded = [bank_of([(link, cell, 1, 1) for link in range(16) for cell in (3, 120)], n) for n in range(3)]
    return Reference(GEOMETRY, encode([*events, damaged, crowded]))


def test_the_kernels_spill_nothing_and_eight_blocks_share_a_multiprocessor() -> None:
    of_chain = resources(nvrtc_of(CUDA_VERSION), "90", scifi_chain().kernels)
    for name, used in ((algorithm.name, of_chain[algorithm.name]) for algorithm in scifi_chain().sequence):
        assert used.spill_stores == used.spill_loads == used.stack == 0, name
        assert used.registers <= 64, name
        assert MULTIPROCESSORS["90"].occupancy(used, 64) >= 8 * 2 / 64, name


def wide(first: int, distance: int, link: int = 2) -> list[Word]:
    """Two edges."""
    return [(link, first, 1, 1), (link, first + distance, 0, 1)]


@pytest.mark.parametrize("version", [4, 5, 6])
@pytest.mark.parametrize("number", [0, 7, 10, 121, 161, 239])
def test_clusters_of_every_width_in_mats_of_either_direction(version: int, number: int) -> None:
    events = [
        [bank_of([(2, 1, 1, 0), *wide(20, distance), (2, 127, 1, 0), (3, 0, 0, 0)], number, version)]
        for distance in range(3, 107)
    ]
    for event, banks in zip(run_scifi(encode(events), GEOMETRY), events, strict=True):
        assert_hits_are_expected(event, banks, GEOMETRY)


words_of_bank = st.lists(
    st.tuples(st.integers(0, 19), st.integers(0, 127), st.integers(0, 1), st.integers(0, 1)),
    max_size=60,
    unique_by=lambda word: word[:2],
).map(sorted)


@settings(max_examples=80)
@given(st.dictionaries(st.integers(0, 239), words_of_bank, max_size=8), st.sampled_from([4, 5, 6]))
def test_random_words_become_the_hits_of_the_oracle(banks: dict[int, list[Word]], version: int) -> None:
    encoded = [bank_of(words, number, version) for number, words in banks.items()]
    (event,) = run_scifi(encode([encoded]), GEOMETRY)
    if event.flags & EventFlag.OVERFLOW:
        # Only pairs of distant edges: more hits than hit_offsets leaves room for.
        n_hits = len(expected_hits(encoded, GEOMETRY).hits.lhcb_id)
        assert n_hits > sum(len(words) for words in banks.values()) + SPARE_HITS
        assert len(event.ids) == 0
        return
    assert_hits_are_expected(event, encoded, GEOMETRY)


GOOD = [(0, 5, 0, 0), (1, 9, 1, 0)]
OTHER_TYPE = RawBank(91, 5, source_id(SubDetector.SCIFI_A, 9), payload_of(GOOD))


@pytest.mark.parametrize(
    "broken",
    [
        bank_of(GOOD, 9, 3),
        bank_of(GOOD, 9, 7),
        bank_of(GOOD, 9, 8),
        RawBank(LhcbBankType.FT_CLUSTER, 5, source_id(SubDetector.SCIFI_C, 240), payload_of(GOOD)),
        RawBank(LhcbBankType.FT_CLUSTER, 5, 9, memoryview(bytes(2))),
        RawBank(LhcbBankType.FT_CLUSTER, 5, 9, memoryview(bytes(9))),
        bank_of([(0, 9, 0, 0), (0, 5, 0, 0)], 9),
        bank_of([(0, 9, 0, 0), (0, 9, 1, 0)], 9),
        bank_of([(0, 9, 0, 1), (0, 11, 0, 1)], 9),
        bank_of([(3, 9, 0, 0), (16, 5, 0, 0)], 9),
        bank_of([(127, 127, 1, 1)], 9),
        OTHER_TYPE,
    ],
    ids=[
        "version before the first",
        "version 7, which needs a list of links",
        "version 8, which needs a list of links",
        "a bank that does not exist",
        "no room for the header",
        "not whole words",
        "words that fall",
        "two words of a channel",
        "edges of no wide cluster",
        "a link that the bank does not read",
        "the last link that a word can have",
        "type of a readout error",
    ],
)
def test_a_damaged_bank_flags_its_event_and_gives_no_hits(broken: RawBank) -> None:
    banks = [bank_of(GOOD, 8), broken, bank_of(GOOD, 10)]
    event, other = run_scifi(encode([banks, [bank_of(GOOD, 8)]]), GEOMETRY)
    assert event.flags == EventFlag.BANK_ERROR
    assert len(event.ids) == 4
    assert_hits_are_expected(event, banks, GEOMETRY)
    assert (other.flags, len(other.ids)) == (0, 2)


def test_two_banks_of_one_number_flag_their_event_and_neither_gives_hits() -> None:
    twice = [
        RawBank(LhcbBankType.FT_CLUSTER, 5, source_id(side, 9), payload_of([(0, cell, 0, 0)]))
        for cell, side in enumerate((SubDetector.SCIFI_A, SubDetector.SCIFI_C), 4)
    ]
    banks = [*twice, bank_of(GOOD, 8)]
    (event,) = run_scifi(encode([banks]), GEOMETRY)
    assert event.flags == EventFlag.BANK_ERROR
    assert_hits_are_expected(event, banks, GEOMETRY)
    assert len(event.ids) == 2


def test_events_without_banks_words_or_a_detector_have_no_hits() -> None:
    odin_only: list[RawBank] = []
    events = run_scifi(encode([[bank_of([], 3)], odin_only, [bank_of(GOOD, 3)]]), GEOMETRY)
    assert [len(event.ids) for event in events] == [0, 0, 2]
    assert [event.flags for event in events] == [0, 0, 0]
    assert not events[0].zone_offset.any()
    assert not events[1].zone_offset.any()


def test_only_one_word_of_zero_at_the_end_is_padding() -> None:
    (event,) = run_scifi(
        encode([[RawBank(LhcbBankType.FT_CLUSTER, 5, 3, memoryview(bytes(6))), bank_of([(0, 0, 0, 0)], 4)]]), GEOMETRY
    )
    assert len(event.ids) == 1


def test_an_event_with_many_more_hits_than_words_is_flagged_and_kept_empty() -> None:
    banks = [bank_of([(link, cell, 0, 1) for link in range(16) for cell in (0, 127)], n) for n in range(100)]
    crowded, other = run_scifi(encode([banks, [bank_of(GOOD, 3)]]), GEOMETRY)
    assert (crowded.flags, len(crowded.ids)) == (EventFlag.OVERFLOW, 0)
    assert not crowded.zone_offset.any()
    assert (other.flags, len(other.ids)) == (0, 2)


def test_an_event_that_no_longer_fits_in_the_buffers_is_flagged_and_kept_empty() -> None:
    every_channel = [(link, cell, 0, 0) for link in range(16) for cell in range(128)]
    small, large = [bank_of(GOOD, 3)], [bank_of(every_channel, 2)]
    mep = encode([small, large, small])
    first, beyond, last = SciFiChain(GEOMETRY, replace(limits_of(mep), input_bytes=mep.data.nbytes)).run(mep)
    assert [first.flags, beyond.flags, last.flags] == [0, EventFlag.OVERFLOW, EventFlag.OVERFLOW]
    assert [len(first.ids), len(beyond.ids), len(last.ids)] == [2, 0, 0]


def test_an_event_with_more_hits_than_16_bits_number_is_flagged_and_kept_empty() -> None:
    every_channel = [(link, cell, 0, 0) for link in range(16) for cell in range(128)]
    mep = encode([[bank_of(every_channel, n) for n in range(40)], [bank_of(GOOD, 3)]])
    large, small = run_scifi(mep, GEOMETRY)
    assert (large.flags, len(large.ids)) == (EventFlag.OVERFLOW, 0)
    assert (small.flags, len(small.ids)) == (0, 2)


def test_equal_batches_give_equal_bits_after_others() -> None:
    banks = simulated_events(2)
    mep = encode(banks)
    chain = SciFiChain(GEOMETRY, limits_of(mep))
    first = chain.run(mep)
    chain.run(encode([banks[1], banks[1]]))
    assert all(a.same_as(b) for a, b in zip(first, chain.run(mep), strict=True))


def columns_of(event: SciFiEvent) -> NDArray[np.float32]:
    return np.stack([event.x, event.z], axis=1)


def test_positions_are_finite_and_inside_the_detector() -> None:
    for event in run_scifi(encode(simulated_events(3)), GEOMETRY):
        assert np.all(np.isfinite(columns_of(event)))
        assert np.abs(event.x).max() < 3300
        assert event.z.min() > 7800
        assert event.z.max() < 9450
