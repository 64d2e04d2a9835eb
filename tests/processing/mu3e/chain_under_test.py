"""The chain `mu3e` for the tests that hold for every chain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.mu3e.chain import CHAIN
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.mu3e.hit_banks import HIT
from tests.processing.chains.chain_under_test import ChainUnderTest, ComparedBatch
from tests.processing.chains.reference import Reference, run_reference
from tests.processing.mu3e.fuzzed_hits import DAMAGE, FUZZED_HITS
from tests.processing.mu3e.pixel_events import COLUMNS, NO_HITS, hits_of, mep_of_hits, simulated

ONE_KERNEL = "one_kernel"


def odd_mep(seed: int, n: int) -> EncodedMep:
    """Simulated sub-slices with signal, and one with hits that no detector has."""
    sub_slices = hits_of(simulated(seed, n, wanted="SIGNAL", spacing=1))
    odd = np.array([(4000, 1, 2, 30, 0), (3, 250, 7, 31, 0), (3, 7, 250, 32, 0), (3, 7, 7, 400, 0)], HIT)
    sub_slices.insert(2, np.concatenate([odd, sub_slices[0][:30], sub_slices[0][:5]]))
    return mep_of_hits(sub_slices, 5)


@cache
def reference(n: int, one_kernel: bool = False) -> Reference:
    """Simulated sub-slices and an odd one."""
    return run_reference(CHAIN, odd_mep(3, n), CHAIN.load_geometry(None), ONE_KERNEL if one_kernel else None, COLUMNS)


@cache
def small_reference(one_kernel: bool = False) -> Reference:
    """A sub-slice with a signal decay and few other hits, between margins."""
    (made,) = hits_of(simulated(19, 1, wanted="SIGNAL", spacing=1, muon_rate=2e6, noise=0.02))
    mep = mep_of_hits([NO_HITS, np.concatenate([made, made[:1]]), made[:6], NO_HITS], 5)
    return run_reference(CHAIN, mep, CHAIN.load_geometry(None), ONE_KERNEL if one_kernel else None, COLUMNS)


def meps(_: TriggerChain, seed: int) -> Iterator[EncodedMep]:
    """Simulated sub-slices."""
    yield odd_mep(seed, 4)


CHAIN_UNDER_TEST = ChainUnderTest(
    chain=CHAIN,
    batches={
        "decays": ComparedBatch(reference=lambda: reference(4), finds=("mu3e_tracks.own",), emulated=(1, 32, 256)),
        "one_kernel": ComparedBatch(
            reference=lambda: reference(4, one_kernel=True), finds=("mu3e_tracks.own",), emulated=(1, 32, 256)
        ),
        "decays-by-ptx": ComparedBatch(
            reference=small_reference,
            finds=("mu3e_tracks.own",),
            ptx=((32, False), (64, True)),
        ),
        "one_kernel-by-ptx": ComparedBatch(
            reference=lambda: small_reference(one_kernel=True), finds=("mu3e_tracks.own",), ptx=((32, True),)
        ),
    },
    shared_batches=("decays-by-ptx",),
    meps=meps,
    damage=DAMAGE,
    fuzzed=(FUZZED_HITS,),
    harmless=lambda conflict: conflict.equal,
)
