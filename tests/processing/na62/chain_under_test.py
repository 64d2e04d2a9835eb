"""The chain `na62_rich` for the tests that hold for every chain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.na62.chain import CHAIN
from hltnode.processing.na62.offline.simulation.decays import Decay
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.na62.rich_banks import encode_hits
from tests.processing.chains.chain_under_test import ChainUnderTest, ComparedBatch
from tests.processing.chains.reference import Reference, run_reference
from tests.processing.na62.fuzzed_hits import DAMAGE, FUZZED_HITS
from tests.processing.na62.rich_events import COLUMNS, mep_of_payloads, mixed_payloads, simulated


@cache
def reference(seed: int, n: int, sequence: str) -> Reference:
    """Simulated events and odd ones."""
    mep = mep_of_payloads(mixed_payloads(seed, n), 5)
    return run_reference(CHAIN, mep, CHAIN.load_geometry(None), sequence, COLUMNS)


def meps(_: TriggerChain, seed: int) -> Iterator[EncodedMep]:
    """Simulated events."""
    yield mep_of_payloads(mixed_payloads(seed, 12))


@cache
def full_events(sequence: str) -> Reference:
    """Two events with many hits."""
    payloads = [encode_hits(hits) for hits in simulated(5, 30, Decay.THREE_PIONS) if 48 <= len(hits) <= 64]
    return run_reference(CHAIN, mep_of_payloads(payloads[:2]), CHAIN.load_geometry(None), sequence, COLUMNS)


SEQUENCES = ("several_rings", "single_ring")
CHAIN_UNDER_TEST = ChainUnderTest(
    chain=CHAIN,
    batches={
        **{
            sequence: ComparedBatch(
                reference=partial(reference, 3, 30, sequence),
                finds=("rich_hits.count",),
                emulated=(1, 32, 256),
            )
            for sequence in SEQUENCES
        },
        **{
            f"{sequence}-by-ptx": ComparedBatch(
                reference=partial(full_events, sequence),
                finds=("rich_hits.count",),
                ptx=((32, False), (64, True)),
            )
            for sequence in SEQUENCES
        },
    },
    shared_batches=("several_rings-by-ptx",),
    meps=meps,
    damage=DAMAGE,
    fuzzed=(FUZZED_HITS,),
    harmless=lambda conflict: conflict.equal,
)
