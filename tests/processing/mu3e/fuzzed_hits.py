"""Banks of pixel hits for the test that damages them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.mu3e.detector_constants import SUB_SLICE_NS
from hltnode.processing.mu3e.hits.collections import MAX_HITS
from hltnode.processing.mu3e.tracks.collections import MAX_TRACKS
from hltnode.processing.mu3e.vertices.collections import MAX_VERTICES, MAX_WINDOWS
from hltnode.protocol.mu3e.hit_banks import MU3E_SUBDETECTOR
from tests.processing.chains.damage import Damage
from tests.processing.chains.fuzzed_detector import FuzzedDetector, FuzzedSample, StuckValues
from tests.processing.mu3e.pixel_events import NO_HITS, hits_of, mep_of_hits, run_chain, simulated
from tests.processing.mu3e.track_oracle import REACH

DAMAGE = Damage(versions=(0, 1, 2, 255), types=(0, 1, 2, 16, 240, 254, 255))


@dataclass(frozen=True, slots=True)
class FoundDecays:
    """Hits, tracks, vertices, windows and flags of a sub-slice."""

    content: bytes
    hits: np.ndarray
    tracks: np.ndarray
    vertices: np.ndarray
    windows: np.ndarray

    def same_as(self, other: FoundDecays) -> bool:
        """Whether both sub-slices are equal bit by bit."""
        return self.content == other.content


def found_decays(mep: EncodedMep) -> list[FoundDecays]:
    """The sub-slices of a MEP through the kernels. Hits and tracks that begin in neighbours are left out."""
    found = run_chain(mep)
    decays = []
    for e, (words, tracks) in enumerate(zip(found.hits, found.tracks, strict=True)):
        time = (words >> np.uint64(28) & np.uint64(0x1FFFF)).astype(np.int64) - REACH
        parts = (words[(time >= 0) & (time < SUB_SLICE_NS)], tracks[: found.own_tracks[e]], found.vertices[e])
        content = b"".join(part.tobytes() for part in (*parts, found.windows[e], found.words[e]))
        decays.append(FoundDecays(content, words, *parts[1:], found.windows[e]))
    return decays


@cache
def sample(_: str) -> FuzzedSample:
    """Simulated sub-slices with an empty one on both sides, so that damage of one changes no other."""
    made = hits_of(simulated(9, 4, wanted="SIGNAL", spacing=1))
    inner = [hits[(hits["time"] >= 100) & (hits["time"] < 340)] for hits in made]
    mep = mep_of_hits([NO_HITS, *(part for hits in inner for part in (hits, NO_HITS))], 5)
    return FuzzedSample(mep, found_decays, found_decays(mep))


def check(sub_slices: Sequence[FoundDecays]) -> None:
    """Hits in ascending order; all lists within their bounds; tracks and vertices of finite numbers."""
    for each in sub_slices:
        assert len(each.hits) <= MAX_HITS
        assert (each.hits[1:] > each.hits[:-1]).all()
        assert len(each.tracks) <= MAX_TRACKS
        assert len(each.vertices) <= MAX_VERTICES
        assert len(each.windows) <= MAX_WINDOWS
        for name in ("momentum", "px", "py", "pz", "chi2", "time"):
            assert np.isfinite(each.tracks[name]).all()
        for name in ("x", "y", "z", "chi2", "energy", "momentum", "mass", "time"):
            assert np.isfinite(each.vertices[name]).all()
        assert (each.windows["start_ns"] < each.windows["end_ns"]).all()


FUZZED_HITS = FuzzedDetector(
    name="pixels",
    variants=("pixels",),
    sample=sample,
    subdetectors=frozenset({MU3E_SUBDETECTOR}),
    check=check,
    damage=DAMAGE,
    stuck=StuckValues((0, 0xFFFF_FFFF, 0x0001_0001), dtype="<u4"),
    head=None,
    payloads=6,
    headers=3,
    payload_examples=10,
    header_examples=20,
)
