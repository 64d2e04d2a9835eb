"""The chain `alice_tpc` for the tests that hold for every chain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.selection.trigger_chain import TriggerChain
from tests.processing.alice.fuzzed_clusters import DAMAGE, FUZZED_CLUSTERS
from tests.processing.alice.toy_events import COLUMNS, event_of, mep_of, mixed_events, toy_slice
from tests.processing.chains.chain_under_test import ChainUnderTest, ComparedBatch
from tests.processing.chains.reference import Reference, run_reference


@cache
def reference() -> Reference:
    """Tracks, noise, an empty event and a broken bank."""
    return run_reference(CHAIN, mep_of(mixed_events(3)), CHAIN.load_geometry(None), None, COLUMNS)


@cache
def short_tracks(sequence: str | None = None) -> Reference:
    """Two tracks in a few rows of one slice, in one event."""
    rng = np.random.default_rng(5)
    clusters = toy_slice(rng, 2, 6).clusters
    mep = mep_of([event_of({21: clusters[clusters["row"] < 16]})])
    return run_reference(CHAIN, mep, CHAIN.load_geometry(None), sequence, COLUMNS)


def meps(_: TriggerChain, seed: int) -> Iterator[EncodedMep]:
    """Events with few tracks."""
    yield mep_of(mixed_events(seed))


FINDS = ("tpc_tracks.count", "tpc_merged_tracks.count")

CHAIN_UNDER_TEST = ChainUnderTest(
    chain=CHAIN,
    batches={
        "tracks": ComparedBatch(reference=reference, finds=FINDS, emulated=(1, 32, 256)),
        "tracks-by-ptx": ComparedBatch(reference=short_tracks, finds=FINDS, ptx=((32, False), (64, True))),
        **{
            # tests/processing/alice/tpc/test_schedules.py has more block sizes, with larger events.
            sequence: ComparedBatch(
                reference=partial(short_tracks, sequence),
                finds=("tpc_tracks.count",),
                emulated=(32,),
                ptx=((32, backward),),
            )
            for sequence, backward in (
                ("slice_tracks_canonical", True),
                ("slice_tracks_pool", False),
                ("slice_tracks_row_blocks", True),
            )
        },
    },
    shared_batches=("tracks-by-ptx", "slice_tracks_row_blocks"),
    meps=meps,
    damage=DAMAGE,
    fuzzed=(FUZZED_CLUSTERS,),
    harmless=lambda conflict: conflict.equal,
)
