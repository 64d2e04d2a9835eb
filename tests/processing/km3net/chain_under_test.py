"""The chain `km3net` for the tests that hold for every chain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.km3net.chain import CHAIN
from hltnode.processing.selection.trigger_chain import TriggerChain
from tests.processing.chains.chain_under_test import ChainUnderTest, ComparedBatch
from tests.processing.chains.reference import Reference, run_reference
from tests.processing.km3net.fuzzed_hits import DAMAGE, FUZZED_HITS
from tests.processing.km3net.telescope_events import COLUMNS, made_hits, mep_of_hits, simulated


def odd_mep(seed: int, n: int) -> EncodedMep:
    """Simulated sub-slices with muons, one crowded one and one with hits that no detector has."""
    sub_slices = list(simulated(seed, n, muon_rate=30_000.0))
    sub_slices.insert(2, made_hits([(i % 84, 1000 + 3 * i) for i in range(200)]))
    sub_slices.insert(3, made_hits([(90, 5), (3, 30_000), (4, 7)]))
    return mep_of_hits(sub_slices, 5)


@cache
def reference(n: int) -> Reference:
    """Simulated sub-slices and odd ones."""
    return run_reference(CHAIN, odd_mep(3, n), CHAIN.load_geometry(None), None, COLUMNS)


@cache
def small_reference() -> Reference:
    """Two sub-slices of few hits and a muon, between margins."""
    (made,) = (each for each in simulated(4, 1, muon_rate=100_000.0, rate=20_000.0))
    few = made[made["time"] < 8_000]
    mep = mep_of_hits([few[:0], few, np.concatenate([few[:40], few[:1]]), few[:0]], 5)
    return run_reference(CHAIN, mep, CHAIN.load_geometry(None), None, COLUMNS)


def meps(_: TriggerChain, seed: int) -> Iterator[EncodedMep]:
    """Simulated sub-slices."""
    yield odd_mep(seed, 5)


CHAIN_UNDER_TEST = ChainUnderTest(
    chain=CHAIN,
    batches={
        "muon_windows": ComparedBatch(
            reference=lambda: reference(6), finds=("candidates.count",), emulated=(1, 32, 256)
        ),
        "muon_windows-by-ptx": ComparedBatch(
            reference=small_reference, finds=("candidates.count",), ptx=((32, False), (64, True))
        ),
    },
    shared_batches=("muon_windows-by-ptx",),
    meps=meps,
    damage=DAMAGE,
    fuzzed=(FUZZED_HITS,),
    harmless=lambda conflict: conflict.equal,
)
