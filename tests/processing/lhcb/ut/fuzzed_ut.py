"""The UT's banks for the test that damages them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.protocol.lhcb.subdetectors import SubDetector
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.lhcb.ut.test_decoding import simulated
from tests.processing.lhcb.ut.ut_chain import Detector, UtChain, UtEvent, limits_of, ut_chain

N_EVENTS = 3


@cache
def sample(version: int) -> FuzzedSample:
    """Simulated events."""
    mep = encode_mep(ut_chain(), simulated(N_EVENTS, version=version))
    chain = UtChain(Detector.builtin(), limits_of(mep))
    return FuzzedSample(mep, chain.run, chain.run(mep))


def check(events: Sequence[UtEvent]) -> None:
    """Hits lie in their groups and sectors; tracks have hits of the event."""
    for event in events:
        n_hits = len(event.hits["id"])
        for offset in (event.group_offset, event.sector_offset):
            assert np.all(np.diff(offset.astype(int)) >= 0)
            assert offset[-1] == n_hits
        for name in ("x", "z", "y_begin", "y_end", "weight"):
            assert np.all(np.isfinite(event.hits[name]))
        hits = event.tracks["hits"]
        assert np.all((hits < n_hits) | (hits == 0xFFFF))
        assert np.all((hits < n_hits).sum(axis=1) == event.tracks["hit_count"])
        assert np.all(event.tracks["hit_count"] >= 3)
        assert np.all(np.diff(event.tracks["velo_track"].astype(int)) > 0)
        assert np.all(np.isfinite(event.tracks["qop"]))


FUZZED_UT = FuzzedDetector(
    name="ut",
    variants=(3, 4),
    sample=sample,
    subdetectors=frozenset({SubDetector.UT_A, SubDetector.UT_C}),
    check=check,
    damage=Damage(versions=(0, 1, 2, 3, 4, 5, 255), types=(66, 73, 16, 89, 254, 255)),
    stuck=StuckValues((0, 1, 0x55, 0x7F, 0x80, 0xAA, 0xFE, 0xFF), dtype="u1"),
    head=8,
    payloads=20,
    headers=40,
    payload_examples=60,
    header_examples=80,
)
