"""The CPU form of the decoder gives the results of the common kernel, for every instruction set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.geometry.scifi_mats import read_out_table
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import source_id
from tests.processing.framework.kernel_runner import on_cpu
from tests.processing.lhcb.scifi.scifi_chain import scifi_chain
from tests.processing.lhcb.scifi.scifi_reference import Reference

GEOMETRY = SciFiGeometry.builtin()
CHANNELS_OF_BANK = 512 * read_out_table(GEOMETRY)["n_mats"][0].astype(int)
TARGETS = KernelLibrary(CHAIN.kernels).targets


def flags_where_forms_agree(events: Sequence[list[RawBank]]) -> list[int]:
    """Compare the forms; returns the flags of the events.

    The reference is compiled for the baseline instruction set.
    """
    reference = Reference(GEOMETRY, encode_mep(scifi_chain(), [list(banks) for banks in events]))
    for target in TARGETS:
        assert reference.differences(on_cpu(target)) == [], target
        assert reference.differences(on_cpu(target, common=True)) == [], target
    return [event.flags for event in reference.events]


def random_bank(rng: np.random.Generator, number: int, n_words: int, edges: float, version: int = 5) -> RawBank:
    """Ascending words, some of them edges. Words far behind an edge are rare, because they create hits in between."""
    gaps = rng.integers(3, 9, n_words)
    if n_words < 100:
        gaps = np.where(rng.random(n_words) < 0.02, rng.integers(9, 100, n_words), gaps)
    channels = int(rng.integers(0, 100)) + np.cumsum(gaps)
    channels = channels[channels < CHANNELS_OF_BANK[number]]
    words = channels << 2 | rng.integers(0, 2, len(channels)) << 1 | (rng.random(len(channels)) < edges)
    payload = np.array([0, 0, *words, *([0] * (len(words) % 2))], "<u2").tobytes()
    return RawBank(LhcbBankType.FT_CLUSTER, version, number, memoryview(payload))


def random_event(rng: np.random.Generator, most_words: int, edges: float, version: int = 5) -> list[RawBank]:
    return [random_bank(rng, i, int(rng.integers(0, most_words + 1)), edges, version) for i in range(240)]


@pytest.mark.parametrize("version", [4, 5, 6])
def test_clusters_of_all_widths(version: int) -> None:
    """Banks end before, at and behind 32 words, the step of the CPU form; clusters cross this limit."""
    rng = np.random.default_rng(version)
    events = [random_event(rng, n, edges, version) for n in (3, 34, 100) for edges in (0.0, 0.1, 0.5, 1.0)]
    flags = flags_where_forms_agree(events)
    assert set(flags) == {0}


def test_banks_of_every_length_around_32_and_64_words() -> None:
    rng = np.random.default_rng(1)
    event = [random_bank(rng, i, 20 + i % 60, 0.1) for i in range(240)]
    assert flags_where_forms_agree([event]) == [0]


def test_more_hits_than_the_form_has_places_for() -> None:
    rng = np.random.default_rng(2)
    events = [[random_bank(rng, i, n, edges) for i in range(240)] for n, edges in ((51, 0.0), (53, 0.0), (200, 0.1))]
    assert flags_where_forms_agree(events) == [0, 0, 0]


def test_more_hits_than_the_event_may_have() -> None:
    """Edges as far apart as a link allows."""
    words = [link << 9 | cell << 2 | 1 for link in range(16) for cell in (0, 127)]
    payload = memoryview(np.array([0, 0, *words], "<u2").tobytes())
    banks = [RawBank(LhcbBankType.FT_CLUSTER, 5, i, payload) for i in range(240)]
    assert flags_where_forms_agree([banks, banks[:1]]) == [EventFlag.OVERFLOW, EventFlag.OVERFLOW]


@pytest.mark.parametrize("seed", range(3))
def test_damaged_words(seed: int) -> None:
    """Descending words, missing links, edges that are too near: a bank is refused or read as a whole."""
    rng = np.random.default_rng(seed)
    events = []
    for most in (8, 40, 90):
        banks = []
        for bank in random_event(rng, most, 0.3):
            words = np.frombuffer(bank.payload, "<u2").copy()
            if len(words) > 2 and rng.random() < 0.3:
                words[rng.integers(2, len(words))] ^= 1 << int(rng.integers(0, 16))
            banks.append(RawBank(bank.type, 5, bank.source_id, memoryview(words.tobytes())))
        events.append(banks)
    assert set(flags_where_forms_agree(events)) == {EventFlag.BANK_ERROR}


def test_two_sources_of_one_number_beside_sound_banks() -> None:
    """Includes events in which one of them has no bank."""
    rng = np.random.default_rng(4)
    event = random_event(rng, 30, 0.2)
    sides = (SubDetector.SCIFI_A, SubDetector.SCIFI_C)
    twice = [
        RawBank(LhcbBankType.FT_CLUSTER, 5, source_id(side, 9), random_bank(rng, 9, 5, 0.0).payload) for side in sides
    ]
    others = [bank for bank in event if bank.source_id != 9]
    assert flags_where_forms_agree([[*twice, *others], [*twice[:1], *others]]) == [EventFlag.BANK_ERROR] * 2
