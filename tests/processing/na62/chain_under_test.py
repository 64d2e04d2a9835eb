"""The chain `na62_rich` for the tests that hold for every chain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.na62.chain import CHAIN
from hltnode.processing.selection.trigger_chain import TriggerChain
from tests.processing.chains.chain_under_test import ChainUnderTest, ComparedBatch
from tests.processing.chains.reference import Reference, run_reference
from tests.processing.na62.fuzzed_hits import DAMAGE, FUZZED_HITS
from tests.processing.na62.rich_events import COLUMNS, mep_of_payloads, mixed_payloads


@cache
def reference(seed: int, n: int, sequence: str) -> Reference:
    """Simulated events and odd ones."""
    mep = mep_of_payloads(mixed_payloads(seed, n), 5)
    return run_reference(CHAIN, mep, CHAIN.load_geometry(None), sequence, COLUMNS)


def meps(_: TriggerChain, seed: int) -> Iterator[EncodedMep]:
    """Simulated events."""
    yield mep_of_payloads(mixed_payloads(seed, 12))


CHAIN_UNDER_TEST = ChainUnderTest(
    chain=CHAIN,
    batches={
        sequence: ComparedBatch(
            reference=partial(reference, 3, 30, sequence),
            finds=("rich_hits.count", "rings.count"),
            emulated=(1, 32, 256),
        )
        for sequence in ("several_rings", "single_ring")
    }
    | {
        f"{sequence}-by-ptx": ComparedBatch(
            reference=partial(reference, 4, n, sequence),
            finds=("rings.count",),
            ptx=((32, False), (64, True)),
        )
        for sequence, n in (("several_rings", 4), ("single_ring", 8))
    },
    shared_batches=("several_rings-by-ptx",),
    meps=meps,
    damage=DAMAGE,
    fuzzed=(FUZZED_HITS,),
    harmless=lambda conflict: conflict.equal,
)
