"""The banks of the TPC for the test that damages them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from hltnode.protocol.alice.tpc_banks import TPC_SUBDETECTOR
from tests.processing.alice.toy_events import FoundEvent, mep_of, mixed_events, run_chain
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues

DAMAGE = Damage(versions=(0, 1, 2, 255), types=(0, 1, 2, 16, 240, 254, 255))


@cache
def sample(_: str) -> FuzzedSample:
    """Tracks, noise, an empty event and a broken bank."""
    mep = mep_of(mixed_events(9), 11)
    return FuzzedSample(mep, run_chain, run_chain(mep))


def check(events: Sequence[FoundEvent]) -> None:
    """Tracks of damaged banks are finite, have no negative variance, and clusters that the event has."""
    for event in events:
        assert event.tracks["n_clusters"].sum() == len(event.clusters)
        assert (event.tracks["n_clusters"] >= 10).all()
        assert (event.clusters < event.n_clusters).all()
        assert np.sort(event.segments).tolist() == list(range(len(event.tracks)))
        assert event.merged["n_segments"].sum() == len(event.segments)
        for tracks in (event.tracks, event.merged):
            for name in ("x", "y", "z", "sin_phi", "tan_lambda", "q_pt", "chi2"):
                assert np.isfinite(tracks[name]).all()
            for name in ("c_yy", "c_zz", "c_ss", "c_ll", "c_qq"):
                assert (tracks[name] > 0.0).all()


FUZZED_CLUSTERS = FuzzedDetector(
    name="tpc",
    variants=("clusters",),
    sample=sample,
    subdetectors=frozenset({TPC_SUBDETECTOR}),
    check=check,
    damage=DAMAGE,
    stuck=StuckValues((0, 0xFFFF, 0x0010), dtype="<u2"),
    head=8,
    payloads=4,
    headers=3,
    payload_examples=8,
    header_examples=12,
)
