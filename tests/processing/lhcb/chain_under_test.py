"""LHCb's chain for the tests that hold for every chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.selection.trigger_chain import TriggerChain
from tests.processing.chains.chain_under_test import ChainUnderTest, ComparedBatch
from tests.processing.chains.reference import Reference
from tests.processing.lhcb.calorimeter.ecal_batches import with_ecal
from tests.processing.lhcb.calorimeter.fuzzed_ecal import FUZZED_ECAL
from tests.processing.lhcb.damage import DAMAGE
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.luminosity.plume_batches import FUZZED_PLUME, with_plume
from tests.processing.lhcb.muon.fuzzed_muon import FUZZED_MUON
from tests.processing.lhcb.scifi.fuzzed_scifi import FUZZED_SCIFI
from tests.processing.lhcb.ut.fuzzed_ut import FUZZED_UT
from tests.processing.lhcb.velo.dense_events import noise
from tests.processing.lhcb.velo.fuzzed_velo import FUZZED_VELO
from tests.processing.lhcb.whole_chain import reference_of
from tests.ptx.machine import Conflict

ENCODINGS: tuple[VeloEncoding, ...] = ("retina", "superpixel")
WRITES_EQUAL_VALUES = {"velo_search_by_triplet", "velo_follow_tracks", "velo_extend_downstream"}
"""Kernels of the VELO in which several threads set the same mark, which does no harm."""
READS_BIDS = {"matching_match_seeds", "forward_search_without_ut"}
"""Kernels that read a bid while other threads lower it. The results do not depend on the bid that they read.

The first skips bids that can no longer win; the second only tests whether the bid is from another kernel."""
RARE = frozenset({"muon_stubs.count", "downstream_v0s.count"})
"""Counts of objects that are not in every event."""


@cache
def velo_events(encoding: VeloEncoding, n_events: int) -> Reference:
    """Small events with vertices."""
    geometry = VeloGeometry.builtin()
    events = list(simulate_events(n_events, seed=4, geometry=geometry, velo_banks=encoding))
    return reference_of(encode_mep(CHAIN, events, encoding=encoding), geometry)


@cache
def few_hits() -> Reference:
    """Events with few hits or none between larger events; they must not read memory of the larger ones."""
    events = [noise(n, seed=n) for n in (40, 0, 1, 2, 3, 7, 8, 9, 0, 33, 208, 800, 0)]
    return reference_of(encode_mep(CHAIN, events, encoding="retina"), VeloGeometry.builtin())


@cache
def whole_events(sequence: str, encoding: VeloEncoding) -> Reference:
    """Small events with the banks of all detectors."""
    events = with_plume(with_ecal(full_events(2, 4, encoding, nu=2.0), 4), 4)
    return reference_of(encode_mep(CHAIN.with_sequence(sequence), events, encoding=encoding), None, sequence)


def batches() -> Iterator[tuple[str, ComparedBatch]]:
    """The VELO chain, which is the cheapest, runs in every way; the others run in some."""
    for encoding in ENCODINGS:
        reference: Callable[[], Reference] = partial(velo_events, encoding, 5)
        yield f"velo-{encoding}", ComparedBatch(reference=reference, finds=("pvs.count",), emulated=(1, 32, 100, 256))
        reference = partial(velo_events, encoding, 2)
        every_way = tuple((block_size, backward) for block_size in (32, 64) for backward in (False, True))
        yield f"velo-{encoding}-by-ptx", ComparedBatch(reference=reference, finds=("pvs.count",), ptx=every_way)
    every_way = tuple((block_size, backward) for block_size in (32, 100, 256) for backward in (False, True))
    yield "few-hits", ComparedBatch(reference=few_hits, finds=(), emulated=(32, 100, 256), ptx=every_way)
    for sequence in tuple(CHAIN.sequences)[1:]:
        finds = tuple(column.name for column in CHAIN.sequences[sequence].counts.values())
        # Only super-pixels reach the clustering of this sequence.
        first, second = ENCODINGS[::-1] if sequence == "velo_sparse_ccl" else ENCODINGS
        reference = partial(whole_events, sequence, first)
        some_ways = ((32, True), (64, False), (128, True))
        yield sequence, ComparedBatch(reference=reference, finds=finds, rare=RARE, emulated=(1, 32, 256), ptx=some_ways)
        reference = partial(whole_events, sequence, second)
        yield f"{sequence}-{second}", ComparedBatch(reference=reference, finds=finds, rare=RARE, emulated=(100,))


def meps(chain: TriggerChain, seed: int) -> Iterator[EncodedMep]:
    """Simulated events, in both encodings of the VELO."""
    for encoding in ENCODINGS:
        yield encode_mep(chain, with_plume(with_ecal(full_events(3, seed, encoding), seed), seed))


def harmless(conflict: Conflict) -> bool:
    """Writes of equal values, and reads of bids."""
    if conflict.kernel.startswith("velo_"):
        return conflict.equal and conflict.kernel in WRITES_EQUAL_VALUES
    return conflict.equal or (conflict.kernel in READS_BIDS and "atomic access" in conflict.text)


CHAIN_UNDER_TEST = ChainUnderTest(
    chain=CHAIN,
    batches=dict(batches()),
    shared_batches=("velo-retina-by-ptx", "velo-superpixel-by-ptx"),
    meps=meps,
    damage=DAMAGE,
    fuzzed=(FUZZED_VELO, FUZZED_UT, FUZZED_SCIFI, FUZZED_MUON, FUZZED_ECAL, FUZZED_PLUME),
    harmless=harmless,
    shared_memory={"velo_sort_by_phi": 2 * 26 * 128 + 1},
)
