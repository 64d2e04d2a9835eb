"""A stream of hits, one sub-slice at a time: decays of potassium 40, bioluminescence and muons.

Each sub-slice has random numbers of its own, so any part of the stream can be made, in any order, with the same hits.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.km3net.detector_constants import SUB_SLICE_NS
from hltnode.processing.km3net.geometry.pmt_table import Detector
from hltnode.processing.km3net.offline.simulation.muons import drawn_muon, muon_hits
from hltnode.protocol.km3net.hit_banks import HIT, TRUE_MUON

COINCIDENCE_SPREAD = 4.0
"""ns: standard deviation of the time between two hits of one decay."""
REACH = 6_000
"""ns: hits of a muon lie within this time of its passage through the middle of the detector."""
_BACKGROUND, _MUONS = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """rate: Hz of single hits of a PMT. coincidences: Hz of decays that hit two PMTs of a group of adjacent ones.
    bright_pmts: number of PMTs with bioluminescence, bright_rate: their rate in Hz. muon_rate: Hz. radius: m, greatest
    distance of muons from the middle of the detector. length: ns of a sub-slice."""

    rate: float = 55_000.0
    coincidences: float = 20.0
    bright_pmts: int = 2
    bright_rate: float = 1e6
    muon_rate: float = 2_000.0
    radius: float = 60.0
    length: int = SUB_SLICE_NS


class HitStream:
    """The sub-slices of a stream, numbered from 0 on."""

    def __init__(self, detector: Detector, conditions: Conditions, seed: int) -> None:
        self.detector = detector
        self.conditions = conditions
        self._seed = seed
        n = len(detector.pmts)
        self._rates = np.full(n, conditions.rate)
        bright = np.random.default_rng(seed).choice(n, min(conditions.bright_pmts, n), replace=False)
        self._rates[bright] = conditions.bright_rate
        place = detector.places
        self._size = np.unique(place, return_counts=True)[1]
        self._first = np.cumsum(self._size) - self._size
        self._order = np.argsort(place, kind="stable")
        self._reach = -(-REACH // conditions.length)
        self._muons_of = lru_cache(maxsize=4 * self._reach + 4)(self._passing)

    def hits(self, number: int) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """HIT[hits] of a sub-slice in no order, and TRUE_MUON[muons] of the muons whose first hit lies in it."""
        length = self.conditions.length
        begin, parts, muons = number * length, [self._background(number)], []
        for passed in range(max(number - self._reach, 0), number + self._reach + 1):
            for hits, times, muon in self._muons_of(passed):
                inside = (times >= begin) & (times < begin + length)
                here = hits[inside]
                here["time"] = times[inside] - begin
                parts.append(here)
                if begin <= times.min() < begin + length:
                    true = muon.copy()
                    true["first"], true["last"] = times.min() - begin, times.max() - begin
                    muons.append(true)
        return np.concatenate(parts), np.array(muons, TRUE_MUON)

    def _background(self, number: int) -> NDArray[np.void]:
        rng = np.random.default_rng((self._seed, number, _BACKGROUND))
        length = self.conditions.length
        single = np.repeat(np.arange(len(self._rates)), rng.poisson(self._rates * length * 1e-9))
        times = rng.integers(0, length, len(single))
        able = np.flatnonzero(self._size > 1)
        n_decays = rng.poisson(len(able) * self.conditions.coincidences * length * 1e-9)
        decays = able[rng.integers(0, max(len(able), 1), n_decays)]
        one = rng.integers(0, self._size[decays])
        other = (one + rng.integers(1, np.maximum(self._size[decays], 2))) % self._size[decays]
        pairs = self._order[self._first[decays] + np.array([one, other])].ravel()
        start = rng.integers(0, length, n_decays)
        later = np.rint(start + rng.normal(0.0, COINCIDENCE_SPREAD, n_decays)).astype(np.int64) % length
        found = np.zeros(len(single) + len(pairs), HIT)
        found["pmt"] = np.concatenate([single, pairs])
        found["time"] = np.concatenate([times, start, later])
        found["charge"] = np.clip(100.0 * (1.0 + 0.3 * rng.normal(size=len(found))), 10, 65_535).astype(np.int64)
        return found

    def _passing(self, number: int) -> list[tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.void]]]:
        """For each muon that passes in a sub-slice: HIT[hits], their times since the start of the stream, the truth."""
        rng = np.random.default_rng((self._seed, number, _MUONS))
        length, found = self.conditions.length, []
        for _ in range(rng.poisson(self.conditions.muon_rate * length * 1e-9)):
            muon = drawn_muon(rng, self.conditions.radius)
            passing = number * length + rng.uniform(0.0, length)
            pmts, times, charges = muon_hits(rng, muon, self.detector)
            whole = np.floor(passing + times).astype(np.int64)
            keep = (np.abs(times) < REACH) & (whole >= 0)
            if not keep.any():
                continue
            hits = np.zeros(int(keep.sum()), HIT)
            hits["pmt"], hits["charge"] = pmts[keep], charges[keep]
            truth = np.zeros((), TRUE_MUON)
            truth["hits"] = truth["pmts"] = len(hits)
            truth["position"], truth["direction"] = muon.position, muon.direction
            found.append((hits, whole[keep], truth))
        return found


def source_of_pmts(detector: Detector) -> NDArray[np.int64]:
    """Number of the source of each PMT: its floor in a detector of one line, its line in others."""
    pmts = detector.pmts
    by = "line" if pmts["line"].max(initial=0) else "floor"
    return pmts[by].astype(np.int64)
