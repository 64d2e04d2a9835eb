"""The global event cut: its counts, its rejected events, and that no detector computes these events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.offline.simulation.banks.detector_encoding import BankVersions
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.raw_data.flags import GLOBAL_EVENT_CUT
from hltnode.processing.lhcb.raw_data.global_event_cut import EVENT_CUT_OF_2025, MAX_CLUSTERS, global_event_cut
from hltnode.processing.selection.configuration.overrides import Override
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.scifi import decode_scifi_words
from hltnode.protocol.lhcb.banks.ut import decode_ut
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters, decode_superpixels
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import run_algorithms, with_block_size
from tests.processing.lhcb.scifi.scifi_banks import payload_of, real_events, simulated_events
from tests.processing.lhcb.scifi.scifi_chain import SciFiChain, limits_of, scifi_chain, with_constants

GEOMETRY = SciFiGeometry.builtin()
HEADER_WORDS = 2
COUNTS = ("events.ut_clusters", "events.scifi_clusters")
VELO_COLUMNS = ("velo_clusters.bound", "velo_clusters.super_pixel_bound", "velo_clusters.offset", "velo_unsorted.count")


def announced(banks: Sequence[RawBank]) -> tuple[int, int]:
    """Number of hits of the UT banks and of words of the SciFi banks, padding included."""
    n_scifi = sum(len(bank.payload) // 2 - HEADER_WORDS for bank in banks if bank.type == LhcbBankType.FT_CLUSTER)
    return len(decode_ut(banks).board), n_scifi


def encode(events: Sequence[Sequence[RawBank]]) -> EncodedMep:
    return encode_mep(scifi_chain(), events)


def counts_of(events: Sequence[Sequence[RawBank]]) -> list[tuple[int, int]]:
    """Counts of the kernel for UT and SciFi in each event."""
    mep = encode(events)
    chain = SciFiChain(GEOMETRY, limits_of(mep), retain=COUNTS)
    chain.run(mep)
    ut, scifi = (chain.workspace.fetch(name)[: mep.n_events].tolist() for name in COUNTS)
    return list(zip(ut, scifi, strict=True))


def test_the_cut_counts_what_the_banks_of_the_real_events_announce(shared: Path) -> None:
    banks = real_events(shared)
    counts = counts_of(banks)
    assert counts == [announced(event) for event in banks]
    assert [ut for ut, _ in counts] == [2108, 780, 835, 969, 1170, 433, 1707]
    assert [scifi for _, scifi in counts] == [7298, 2572, 2854, 3456, 4200, 2550, 4828]


@pytest.mark.parametrize("ut_version", [3, 4])
def test_the_cut_counts_ut_banks_of_both_versions(ut_version: int) -> None:
    detector = Detector.builtin()
    source = sample_source("minbias", 3.0, detector.velo.beamline)
    simulation = FullSimulation(detector, source, versions=BankVersions(ut_version=ut_version))
    banks = list(simulation.events(3, seed=8))
    counts = counts_of(banks)
    assert counts == [announced(event) for event in banks]
    assert all(ut > 50 for ut, _ in counts)


@pytest.mark.parametrize(
    ("version", "payload"),
    [
        (3, b""),
        (3, b"\5\0"),
        (3, bytes([3, 0, 0x80, 0, 1, 1, 1, 1])),
        (3, b"\xff" * 40),
        (4, b""),
        (4, bytes([9] * 8)),
        (4, bytes([9, 9, 0, 0, 9, 9, 9, 9, *[0] * 24])),
        (4, bytes([255, 1, 0, 0, 1, 1, 1, 1, *[0] * 24])),
        (5, bytes([1, 0, 0x80, 0, 1, 1, 1, 1])),
    ],
)
def test_a_ut_bank_that_is_too_short_for_its_announced_hits_counts_nothing(version: int, payload: bytes) -> None:
    broken = RawBank(LhcbBankType.UT, version, 5 << 11 | 3, memoryview(payload))
    assert counts_of([[broken]]) == [(0, 0)]


def ut_bank(n: int) -> RawBank:
    """Clusters in one strip, without charges."""
    return RawBank(LhcbBankType.UT, 3, 3, memoryview(n.to_bytes(2, "little") + b"\x80\0" + bytes(2 * n)))


def scifi_bank(n: int) -> RawBank:
    """An even number of words that cannot be decoded."""
    return RawBank(LhcbBankType.FT_CLUSTER, 5, 3, memoryview(bytes(4) + b"\4\0" * n))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, [0, 0, 1, 0, 1, 0, 1]),
        ({"max_clusters": 30_000}, [0, 0, 1, 0, 1, 0, 0]),
        ({"max_clusters": 30_000, "max_ut_clusters": 30_000}, [0, 0, 0, 0, 1, 0, 0]),
        ({"max_clusters": 30_000, "max_scifi_clusters": 30_000}, [0, 0, 1, 0, 0, 0, 0]),
        ({"max_clusters": 0}, [0, 1, 1, 1, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("block_size", [None, 1, 32, 100, 256])
def test_each_limit_and_the_limit_of_the_sum_rejects_events_above_it(
    block_size: int | None, limits: dict[str, int], expected: list[int]
) -> None:
    n = MAX_CLUSTERS
    events: list[list[RawBank]] = [
        [],
        [ut_bank(n)],
        [ut_bank(n + 1)],
        [scifi_bank(n)],
        [scifi_bank(n + 2)],
        [ut_bank(50), scifi_bank(n - 50)],
        [ut_bank(52), scifi_bank(n - 50)],
    ]
    chain = with_constants(scifi_chain(), global_event_cut=limits)
    assert [int(cut) for cut in is_cut(events, chain, block_size)] == expected


def is_cut(events: Sequence[Sequence[RawBank]], chain: Chain, block_size: int | None) -> list[bool]:
    """Which events the chain cuts; with a block size, by blocks of this size too."""
    mep = encode(events)
    runner = SciFiChain(GEOMETRY, limits_of(mep), chain)
    made = runner.run(mep)
    taken = [bool(event.flags & GLOBAL_EVENT_CUT.mask) for event in made]
    if block_size is not None:
        workspace = runner.workspace
        names = ("input.bytes", "input.mfp_rows", "input.mep_rows", "input.event_rows")
        given = {name: workspace.host_array(name) for name in names}
        columns = run_algorithms(
            tuple(chain.sequence)[:2],
            given,
            len(events),
            limits_of(mep),
            with_block_size(block_size, kernels=chain.kernels),
        )
        assert columns["events.flags"][: len(events)].tolist() == [GLOBAL_EVENT_CUT.mask * n for n in taken]
    return taken


def test_the_default_limits_are_the_same_for_each_detector_and_the_sum() -> None:
    assert {constant.name: constant.value for constant in global_event_cut.constants} == {
        "max_ut_clusters": 9750,
        "max_scifi_clusters": 9750,
        "max_clusters": 9750,
        "max_velo_clusters": 2**32 - 1,
        "count_padding": 1,
    }


def test_no_real_event_is_cut(shared: Path) -> None:
    mep = encode(real_events(shared))
    assert [event.flags for event in SciFiChain(GEOMETRY, limits_of(mep), scifi_chain()).run(mep)] == [0] * 7


def test_nothing_of_an_event_that_is_cut_is_decoded_in_any_detector() -> None:
    small, large = simulated_events(2)
    limit = min(sum(announced(event)) for event in (small, large))
    cut_first = sum(announced(small)) > limit
    chain = with_constants(scifi_chain(with_velo=True), global_event_cut={"max_clusters": limit})
    mep = encode([small, large])
    runner = SciFiChain(GEOMETRY, limits_of(mep), chain, retain=(*VELO_COLUMNS, "scifi_hits.bound"))
    workspace = runner.workspace
    events = runner.run(mep)
    cut, kept = (0, 1) if cut_first else (1, 0)
    assert [events[cut].flags, events[kept].flags] == [GLOBAL_EVENT_CUT.mask, 0]
    for name in ("velo_clusters.bound", "scifi_hits.bound"):
        assert workspace.fetch(name)[cut] == 0, name
        assert workspace.fetch(name)[kept] > 0, name
    for name in ("velo_clusters.count", "velo_tracks.count", "scifi_hits.count"):
        assert workspace.host_array(name)[cut] == 0, name
        assert workspace.host_array(name)[kept] > 0, name
    for name in ("velo_clusters.offset", "scifi_hits.offset"):
        assert workspace.fetch(name)[cut] == workspace.fetch(name)[cut + 1], name


def test_an_event_that_is_cut_changes_no_other_event() -> None:
    events = simulated_events(3)
    limit = max(sum(announced(event)) for event in events)
    chain = with_constants(scifi_chain(), global_event_cut={"max_clusters": limit, "max_scifi_clusters": limit})
    mep = encode(events)
    alone = SciFiChain(GEOMETRY, limits_of(mep), chain).run(mep)
    dense = [RawBank(LhcbBankType.FT_CLUSTER, 5, 9, payload_of([(0, 0, 0, 0)] * (limit + 2)))]
    mixed = encode([dense, events[0], dense, *events[1:]])
    _, first, _, second, third = SciFiChain(GEOMETRY, limits_of(mixed), chain).run(mixed)
    assert all(a.same_as(b) for a, b in zip(alone, (first, second, third), strict=True))
    assert np.all([event.flags == 0 for event in alone])


def test_the_workspace_of_a_new_batch_forgets_the_cut() -> None:
    small = encode([[scifi_bank(2)]])
    large = encode([[scifi_bank(MAX_CLUSTERS + 2)]])
    chain = SciFiChain(GEOMETRY, limits_of(large), scifi_chain())
    assert chain.run(large)[0].flags & GLOBAL_EVENT_CUT.mask
    chain.workspace.seal([MepInBatch(1, small.fragments)])
    assert not chain.run(small)[0].flags & GLOBAL_EVENT_CUT.mask


def cut_of_2025(events: Sequence[Sequence[RawBank]], limits: Mapping[str, int], block_size: int | None) -> list[bool]:
    chain = with_constants(scifi_chain(), global_event_cut={**EVENT_CUT_OF_2025, **limits})
    return is_cut(events, chain, block_size)


def made_event(versions: BankVersions) -> list[RawBank]:
    detector = Detector.builtin()
    source = sample_source("minbias", 5.0, detector.velo.beamline)
    (banks,) = FullSimulation(detector, source, versions=versions).events(1, seed=5)
    return banks


@pytest.mark.parametrize("velo_version", [3, 4])
def test_the_cut_of_2025_counts_the_clusters_that_the_decoders_read(velo_version: int) -> None:
    """Limits at and below the decoded numbers: banks announce exactly these."""
    banks = made_event(BankVersions(velo_version=velo_version))
    n_velo, n_scifi = len(decode_retina_clusters(banks).row), len(decode_scifi_words(banks).link)
    assert n_scifi < announced(banks)[1]  # some banks are padded
    cases: list[tuple[dict[str, int], bool]] = [
        ({"max_velo_clusters": n_velo, "max_scifi_clusters": n_scifi}, False),
        ({"max_velo_clusters": n_velo - 1}, True),
        ({"max_scifi_clusters": n_scifi - 1}, True),
        ({"max_scifi_clusters": n_scifi, "count_padding": 1}, True),
    ]
    for limits, cut in cases:
        assert cut_of_2025([banks, []], limits, 64) == [cut, False], limits


@pytest.mark.parametrize("velo_version", [2, 4])
def test_super_pixels_count_the_clusters_that_their_own_pattern_allows(velo_version: int) -> None:
    banks = made_event(BankVersions(velo="superpixel", velo_version=velo_version))
    west, east = (decode_superpixels(banks).pattern >> shift & 15 for shift in (0, 4))
    alone = west & ~(west >> 1) & ~(east | east >> 1 | east << 1)
    candidates = (alone & 15) | (east & ~(east >> 1) & 15) << 4
    n = int(np.bitwise_count(candidates.astype(np.uint8)).sum())
    n_clusters = len(decode_retina_clusters(made_event(BankVersions())).row)
    assert n_clusters <= n < 1.3 * n_clusters
    assert cut_of_2025([banks], {"max_velo_clusters": n}, 64) == [False]
    assert cut_of_2025([banks], {"max_velo_clusters": n - 1}, 64) == [True]


def test_damaged_velo_banks_count_nothing() -> None:
    def velo_bank(version: int, payload: bytes) -> RawBank:
        return RawBank(LhcbBankType.VP_RETINA_CLUSTER, version, 2 << 11 | 3, memoryview(payload))

    damaged = [(3, b""), (3, b"\5\0\0\0" + bytes(16)), (3, b"\1\0"), (4, bytes(7)), (5, bytes(8))]
    for version, payload in damaged:
        assert cut_of_2025([[velo_bank(version, payload)]], {"max_velo_clusters": 0}, None) == [False], version
    sound = velo_bank(3, b"\1\0\0\0" + bytes(4))
    assert cut_of_2025([[sound]], {"max_velo_clusters": 0}, None) == [True]


def test_the_content_of_a_tck_leaves_out_constants_that_were_added_later() -> None:
    """So the keys of earlier configurations stay, and one that sets such a constant has a key of its own."""
    sequence = CHAIN.sequence
    default = CHAIN.load_trigger(None)
    (named,) = (constants for name, constants in default.content(sequence)["sequence"] if name == "global_event_cut")
    assert set(named) == {"max_ut_clusters", "max_scifi_clusters", "max_clusters"}
    overrides = tuple(Override("global_event_cut", name, value) for name, value in EVENT_CUT_OF_2025.items())
    changed = replace(default, overrides=overrides)
    (named,) = (constants for name, constants in changed.content(sequence)["sequence"] if name == "global_event_cut")
    assert named == EVENT_CUT_OF_2025
    again = CHAIN.trigger_of(CHAIN.document(changed))
    assert again.tck(sequence) == changed.tck(sequence) != default.tck(sequence)
    assert CHAIN.trigger_of(CHAIN.document(default)).tck(sequence) == default.tck(sequence)
