"""SciFi banks of versions 7 and 8, those of data taking: the kernels agree with the oracle, rule by rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.geometry.scifi_sipms import NO_SIPM, SciFiSipms
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import on_cpu, with_block_size
from tests.processing.lhcb.scifi.scifi_banks import (
    Word,
    as_links,
    as_version,
    bank_of,
    payload_of,
    real_events,
    simulated_events,
)
from tests.processing.lhcb.scifi.scifi_chain import SciFiEvent, run_scifi, scifi_chain, uncut_chain, with_constants
from tests.processing.lhcb.scifi.scifi_oracle import ExpectedHits, expected_hits_of_links
from tests.processing.lhcb.scifi.scifi_reference import Reference

GEOMETRY = SciFiGeometry.builtin()
assert GEOMETRY.sipms is not None
SIPMS = GEOMETRY.sipms
SOURCE = int(SIPMS.source[7])
ACCURACY = 3e-4
"""mm; float32 against float64 at 3 m."""
GOOD = [(2, 40, 0, 0)]


def encode(events: Sequence[Sequence[RawBank]]) -> EncodedMep:
    return encode_mep(scifi_chain(), events)


def link_bank(words: Sequence[Word], version: int = 8, source: int = SOURCE) -> RawBank:
    return RawBank(LhcbBankType.FT_CLUSTER, version, source, payload_of(words))


def assert_expected(event: SciFiEvent, expected: ExpectedHits) -> None:
    assert event.flags == expected.flags
    assert event.ids.tolist() == expected.hits.lhcb_id.tolist()
    assert event.zone_offset.tolist() == expected.zone_offset().tolist()
    assert event.pseudo_size().tolist() == expected.pseudo_size.tolist()
    assert event.mat().tolist() == expected.hits.mat.tolist()
    np.testing.assert_allclose(event.x, expected.hits.x, atol=ACCURACY, rtol=0)
    np.testing.assert_allclose(event.z, expected.hits.z, atol=ACCURACY, rtol=0)


def shuffled(geometry: SciFiGeometry, seed: int) -> SciFiGeometry:
    """The geometry with its SiPMs on links in random order, over banks with source ids in random order."""
    rng = np.random.default_rng(seed)
    assert geometry.sipms is not None
    sipm = rng.permutation(geometry.sipms.sipm.ravel()).reshape(-1, 24)
    return replace(geometry, sipms=SciFiSipms(rng.permutation(geometry.sipms.source), sipm))


@pytest.mark.parametrize("version", [7, 8])
def test_the_real_events_give_the_hits_of_version_5(version: int, shared: Path, tmp_path: Path) -> None:
    """Through a geometry file with lists of SiPMs; also with SiPMs on any links, where the words of a mat fall."""
    events = real_events(shared)
    of_banks = SciFiGeometry.load(shared / "data" / "lhcb-geometry")
    expected = run_scifi(encode(events), of_banks)
    listed = replace(of_banks, sipms=SIPMS)
    for geometry in (listed, shuffled(listed, 1)):
        geometry.save(tmp_path, version)
        of_links = SciFiGeometry.load(tmp_path)
        assert len(of_links.first_channel) == 0
        found = run_scifi(encode([as_links(event, version, of_links) for event in events]), of_links)
        assert [len(event.ids) for event in found] == [6488, 2226, 2494, 3112, 3731, 2210, 4297]
        assert all(a.same_as(b) for a, b in zip(found, expected, strict=True))


def test_banks_are_read_by_a_geometry_that_has_their_channels(shared: Path) -> None:
    (event,) = simulated_events(1)
    of_links = as_links(event, 8, GEOMETRY)
    no_channels = replace(GEOMETRY, first_channel=np.empty(0, np.uint32))
    no_lists = replace(GEOMETRY, sipms=None)
    read = [len(run_scifi(encode([banks]), GEOMETRY)[0].ids) for banks in (event, of_links)]
    assert read[0] == read[1] > 0
    for banks, geometry in ((event, no_channels), (of_links, no_lists)):
        (refused,) = run_scifi(encode([banks]), geometry)
        assert (refused.flags, len(refused.ids)) == (EventFlag.BANK_ERROR, 0)


RULES: list[tuple[list[Word], dict[int, list[tuple[int, int, int]]]]] = [
    ([(2, 40, 1, 0)], {7: [(40, 1, 4)], 8: [(40, 1, 4)]}),
    # A lone piece: the last one of the bank, of its link, and before a word that does not rise.
    ([(2, 40, 1, 1)], {7: [(40, 1, 0)], 8: [(40, 1, 0)]}),
    ([(2, 40, 1, 1), (2, 40, 0, 0)], {7: [(40, 0, 4), (40, 1, 0)], 8: [(40, 0, 4), (40, 1, 0)]}),
    ([(2, 40, 1, 1), (2, 39, 0, 1)], {7: [(39, 0, 0), (40, 1, 0)], 8: [(39, 0, 0), (40, 1, 0)]}),
    # First and last pieces differ in their fractions.
    ([(2, 40, 1, 1), (2, 43, 0, 1)], {7: [], 8: [(41, 0, 5)]}),
    ([(2, 40, 0, 1), (2, 43, 0, 1)], {7: [(41, 0, 5)], 8: []}),
    ([(2, 40, 1, 1), (2, 43, 1, 1)], {7: [], 8: []}),
    ([(2, 40, 0, 1), (2, 43, 1, 1)], {7: [(41, 0, 5)], 8: []}),
    ([(2, 40, 1, 1), (2, 43, 0, 0)], {7: [], 8: []}),
    ([(2, 40, 0, 1), (2, 43, 0, 0)], {7: [], 8: []}),
    # Both words are used up, and the third one is single.
    ([(2, 40, 1, 1), (2, 43, 0, 1), (2, 50, 0, 1)], {7: [(50, 0, 0)], 8: [(41, 0, 5), (50, 0, 0)]}),
    ([(2, 40, 1, 1), (2, 43, 1, 1), (2, 50, 0, 1)], {7: [(50, 0, 0)], 8: [(50, 0, 0)]}),
    # Widths of 8, 9 and 12.
    ([(2, 40, 1, 1), (2, 46, 0, 1)], {7: [], 8: [(42, 1, 8)]}),
    ([(2, 40, 1, 1), (2, 47, 0, 1)], {7: [], 8: [(40, 1, 0), (44, 1, 0), (47, 0, 0)]}),
    ([(2, 40, 0, 1), (2, 50, 0, 1)], {7: [(40, 1, 0), (44, 1, 0), (48, 1, 0)], 8: []}),
]


def test_each_rule_of_words_and_links_decides_an_event_of_its_own() -> None:
    for version in (7, 8):
        events = [[link_bank(words, version)] for words, _ in RULES]
        found = run_scifi(encode(events), GEOMETRY)
        for event, banks, (words, by_version) in zip(found, events, RULES, strict=True):
            sipm = int(SIPMS.sipm[7, 2])
            cells = [int(channel & 0xFFFFF) - sipm for channel in event.ids]
            hits = sorted(zip(cells, event.pseudo_size().tolist(), strict=True))
            assert hits == sorted((cell, size) for cell, _, size in by_version[version]), (version, words)
            assert_expected(event, expected_hits_of_links(banks, GEOMETRY))


LIMIT = [(link, cell, 0, 0) for link in range(16) for cell in range(60)][: 31 * 24]


def test_links_and_sources_that_do_not_exist_and_banks_of_odd_lengths() -> None:
    unknown = SOURCE + 1000
    off = replace(GEOMETRY, sipms=replace(SIPMS, sipm=np.where(SIPMS.sipm == SIPMS.sipm[7, 3], NO_SIPM, SIPMS.sipm)))
    error, other = EventFlag.BANK_ERROR, link_bank(GOOD, source=int(SIPMS.source[9]))
    cases: list[tuple[list[RawBank], int, int]] = [
        ([link_bank([*GOOD, (24, 5, 0, 0)])], error, 1),
        ([link_bank([*GOOD, (23, 5, 0, 0)])], 0, 1),  # link 23 of this bank is off
        ([link_bank([*GOOD, (3, 5, 0, 0)])], 0, 1),  # so is link 3 of this geometry
        ([link_bank([*GOOD, (4, 5, 0, 0)])], 0, 2),
        ([link_bank(GOOD, source=unknown)], error, 0),
        ([link_bank(GOOD), link_bank(GOOD, source=unknown)], error, 1),
        ([link_bank(LIMIT)], 0, len(LIMIT) - 60),
        ([link_bank([*LIMIT, (15, 100, 0, 0)])], error, 0),
        *(
            ([RawBank(64, 8, SOURCE, memoryview(bytes(n))), other], flags, 1)
            for n, flags in ((0, 0), (2, 0), (3, error))
        ),
        ([link_bank([(2, 90, 0, 0), (1, 3, 0, 0), (2, 10, 0, 0)])], 0, 3),
        ([link_bank([(2, 90, 0, 0), (2, 90, 1, 0)])], 0, 2),
        ([link_bank([(2, 90, 1, 0), (1, 3, 0, 0), (2, 90, 1, 0)])], error, 3),
        ([link_bank([(2, cell, fraction, 0) for cell in range(64) for fraction in (0, 1)])], 0, 128),
        ([link_bank([(1, 5, 0, 0), *((2, cell, f, 0) for cell in range(65) for f in (0, 1))])], error, 1),
        ([link_bank(GOOD), RawBank(92, 8, int(SIPMS.source[8]), memoryview(b""))], error, 1),
        ([link_bank(GOOD), link_bank(GOOD, 6, int(SIPMS.source[9]))], error, 1),
        ([link_bank(GOOD), link_bank(GOOD, 7, int(SIPMS.source[8])), bank_of(GOOD, 6, 6)], error, 2),
    ]
    alone = [run_scifi(encode([banks]), off)[0] for banks, _, _ in cases]
    assert [(event.flags, len(event.ids)) for event in alone] == [(flags, n) for _, flags, n in cases]
    for event, (banks, _, _) in zip(alone[:-2], cases, strict=False):
        assert_expected(event, expected_hits_of_links(banks, off))
    # Sources of one MEP have one version.
    together = run_scifi(encode([banks for banks, _, _ in cases[:-2]]), off)
    assert all(a.same_as(b) for a, b in zip(together, alone[:-2], strict=True))


@cache
def crowded_events() -> list[list[RawBank]]:
    """Random words in any order, few and many; wide clusters, pieces that do not fit, links that do not exist."""
    events = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        banks = []
        for source in SIPMS.source.tolist():
            n = int(rng.integers(0, (4, 40, 200)[seed % 3]))
            link = np.sort(rng.integers(0, 17 + 8 * (seed % 2), n)) if seed % 4 else rng.integers(0, 17, n)
            cell = rng.integers(0, 128, n)
            edge = rng.random(n) < (0.1, 0.6)[seed % 2]
            columns = np.stack([link, cell, rng.integers(0, 2, n), edge], axis=1)
            banks.append(link_bank([tuple(row) for row in columns.tolist()], 7 + seed // 6, source))
        events.append(banks)
    return events


def test_random_words_give_the_hits_of_the_oracle_on_any_links() -> None:
    for geometry in (GEOMETRY, shuffled(GEOMETRY, 2)):
        for banks in crowded_events():
            (event,) = run_scifi(encode([banks]), geometry)
            expected = expected_hits_of_links(banks, geometry)
            if len(expected.hits.x) > sum(len(bank.payload) // 2 - 2 for bank in banks) + 64:
                assert event.flags == expected.flags | EventFlag.OVERFLOW
                assert len(event.ids) == 0
            else:
                order = np.lexsort((event.pseudo_size(), event.ids, event.x, event.zone()))
                assert event.flags == expected.flags
                assert event.ids[order].tolist() == expected.hits.lhcb_id.tolist()
                assert event.pseudo_size()[order].tolist() == expected.pseudo_size.tolist()
                for first, last in zip(event.zone_offset[:24], event.zone_offset[1:25], strict=True):
                    assert np.all(np.diff(event.x[first:last]) >= 0)


def test_lossy_hits_are_the_words() -> None:
    banks = crowded_events()[1]
    (event,) = run_scifi(encode([banks]), GEOMETRY, with_constants(uncut_chain(), scifi_decode_clusters={"lossy": 1}))
    expected = expected_hits_of_links(banks, GEOMETRY, lossy=True)
    assert (event.flags, sorted(event.ids.tolist())) == (expected.flags, sorted(expected.hits.lhcb_id.tolist()))


@pytest.mark.parametrize("version", [7, 8])
def test_all_forms_and_numbers_of_threads_agree(version: int) -> None:
    events = [as_links(event, version, GEOMETRY) for event in simulated_events(3)]
    first = 0 if version == 7 else 6
    events += crowded_events()[first : first + 3]
    reference = Reference(GEOMETRY, encode(events))
    for target in KernelLibrary(CHAIN.kernels).targets:
        assert reference.differences(on_cpu(target)) == [], target
        assert reference.differences(on_cpu(target, common=True)) == [], target
    for block_size, backward in ((1, False), (100, True), (256, False)):
        launch = with_block_size(block_size, backward=backward, kernels=scifi_chain().kernels)
        assert reference.differences(launch) == [], block_size


def test_one_source_with_a_damaged_version_does_not_hide_the_others() -> None:
    (event,) = simulated_events(1)
    of_links = as_links(event, 8, GEOMETRY)
    is_scifi = [bank.type == LhcbBankType.FT_CLUSTER for bank in of_links]
    at = is_scifi.index(True)
    whole, damaged, foreign = (
        run_scifi(encode([of_links[:at] + as_version(of_links[at : at + 1], version) + of_links[at + 1 :]]), GEOMETRY)[
            0
        ]
        for version in (8, 5, 9)
    )
    lost = 0 if len(of_links[at].payload) == 4 else 1
    assert damaged.same_as(foreign)
    assert damaged.flags == EventFlag.BANK_ERROR
    assert len(whole.ids) - len(damaged.ids) >= lost
    assert len(damaged.ids) > 0.9 * len(whole.ids)
