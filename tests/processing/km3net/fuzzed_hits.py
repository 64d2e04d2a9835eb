"""Banks of hits for the test that damages them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.km3net.hits.collections import MAX_CANDIDATES, MAX_HITS, MAX_WINDOWS
from hltnode.protocol.km3net.hit_banks import KM3NET_SUBDETECTOR
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.km3net.telescope_events import mep_of_hits, run_chain, simulated

DAMAGE = Damage(versions=(0, 1, 2, 255), types=(0, 1, 2, 16, 240, 254, 255))


@dataclass(frozen=True, slots=True)
class FoundWindows:
    """Own hits, candidates, windows and flags of a sub-slice."""

    content: bytes
    times: np.ndarray
    candidates: np.ndarray
    windows: np.ndarray

    def same_as(self, other: FoundWindows) -> bool:
        """Whether both sub-slices are equal bit by bit."""
        return self.content == other.content


def found_windows(mep: EncodedMep) -> list[FoundWindows]:
    """The sub-slices of a MEP through the kernels."""
    found = run_chain(mep)
    return [
        FoundWindows(
            b"".join(part.tobytes() for part in (hits[:own], candidates, windows, word)),
            hits >> np.uint64(32),
            candidates,
            windows,
        )
        for hits, own, candidates, windows, word in zip(
            found.hits, found.own, found.candidates, found.windows, found.words, strict=True
        )
    ]


@cache
def sample(_: str) -> FuzzedSample:
    """Simulated sub-slices, each followed by an empty one, so that damage of one changes no other."""
    made = simulated(9, 5, muon_rate=30_000.0)
    mep = mep_of_hits([part for hits in made for part in (hits, hits[:0])], 5)
    return FuzzedSample(mep, found_windows, found_windows(mep))


def check(sub_slices: Sequence[FoundWindows]) -> None:
    """Sorted hits within the sub-slice or the time behind it; candidates and windows within their bounds."""
    for each in sub_slices:
        assert len(each.times) <= MAX_HITS
        assert (np.diff(each.times.astype(np.int64)) >= 0).all()
        assert len(each.candidates) <= MAX_CANDIDATES
        assert len(each.windows) <= MAX_WINDOWS
        assert (each.candidates["time"] < 25_000).all()
        assert (each.windows["start_ns"] < each.windows["end_ns"]).all()


FUZZED_HITS = FuzzedDetector(
    name="telescope",
    variants=("tower",),
    sample=sample,
    subdetectors=frozenset({KM3NET_SUBDETECTOR}),
    check=check,
    damage=DAMAGE,
    stuck=StuckValues((0, 0xFFFF_FFFF, 0x0001_0001), dtype="<u4"),
    head=None,
    payloads=6,
    headers=3,
    payload_examples=10,
    header_examples=20,
)
