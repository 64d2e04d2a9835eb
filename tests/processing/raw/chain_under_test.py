"""The chain `raw` for the tests that hold for every chain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.raw.chain import CHAIN
from hltnode.processing.selection.trigger_chain import TriggerChain
from tests.processing.chains.chain_under_test import ChainUnderTest, ComparedBatch
from tests.processing.chains.damage import Damage
from tests.processing.chains.reference import Reference, run_reference
from tests.processing.raw.fuzzed_banks import FUZZED_BANKS
from tests.processing.raw.raw_events import COLUMNS, mep_of, random_events

BLOCK_SIZES = (1, 32, 100, 256)


@cache
def boards(n_events: int, n_sources: int) -> Reference:
    """Banks of any type and source."""
    return run_reference(CHAIN, mep_of(random_events(3, n_events, n_sources), 5), {}, None, COLUMNS)


@cache
def no_banks() -> Reference:
    """Sources without any bank between sources of banks, and more events than a block has threads."""
    events = [{} if i % 3 else {7: (192, b"x" * i), 9: (193, b"")} for i in range(300)]
    return run_reference(CHAIN, mep_of(events, sources=(7, 8, 9)), {}, None, COLUMNS)


def meps(_: TriggerChain, seed: int) -> Iterator[EncodedMep]:
    """Random banks."""
    yield mep_of(random_events(seed, 6, 40))


CHAIN_UNDER_TEST = ChainUnderTest(
    chain=CHAIN,
    batches={
        "boards": ComparedBatch(reference=lambda: boards(9, 300), finds=("banks.count",), emulated=BLOCK_SIZES),
        "no-banks": ComparedBatch(reference=no_banks, finds=(), emulated=(32, 256)),
        "boards-by-ptx": ComparedBatch(
            reference=lambda: boards(3, 200),
            finds=("banks.count",),
            ptx=tuple((size, backward) for size in (32, 100, 256) for backward in (False, True)),
        ),
    },
    shared_batches=("boards-by-ptx",),
    meps=meps,
    damage=Damage(versions=(0, 1, 7, 255), types=(0, 16, 191, 192, 239, 240, 241, 254, 255)),
    fuzzed=(FUZZED_BANKS,),
    harmless=lambda conflict: conflict.equal,
)
