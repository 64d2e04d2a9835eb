"""Search by triplet in slow and simple code: Python loops over hits that are sorted by phi in each module pair.

Operations are those of the kernels, in single precision, so the tracks must be identical.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

F = np.float32
N_PAIRS = 26
BINS = 128
UNITS_PER_RADIAN = F(32768) / F(3.14159265358979)
NO_RANK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """The constants of the kernels, by their names."""

    max_seed_scatter: float
    max_forward_scatter: float
    max_shared_scatter: float
    max_phi_tolerance: float
    max_seed_slope: float
    max_displaced_slope: float
    seed_phi_tolerance: int
    displaced_phi_tolerance: int
    max_skipped_pairs: int
    max_shared_fraction: float
    max_chi2: float
    seed_partners: int = 8
    plane_kind: int = 0


@dataclass(slots=True)
class Candidate:
    """A track that is being followed; `hits` from large to small z."""

    hits: list[int]
    skipped: int = 0
    shares: bool = False

    @property
    def is_track(self) -> bool:
        return len(self.hits) > 3


@dataclass(slots=True)
class Search:
    """One event: x, y, z f32[n], phi i16[n], and the first hit of each pair."""

    x: NDArray[np.float32]
    y: NDArray[np.float32]
    z: NDArray[np.float32]
    phi: NDArray[np.int16]
    offset: Sequence[int]
    module_z: NDArray[np.float32]
    cuts: Cuts
    used: set[int] = field(default_factory=set)

    def tracks(self) -> list[list[int]]:
        """Tracks of four or more hits without clones, in the order of their creation, then three-hit tracks."""
        tracks: list[Candidate] = []
        triplets: list[Candidate] = []
        open_ones: list[Candidate] = []
        for pair in range(N_PAIRS - 2, 0, -1):
            open_ones = self._forward(open_ones, pair - 1, tracks)
            new = [Candidate(hits) for hits in self._seeds(pair)]
            triplets += new
            open_ones += new
        survivors = without_clones([track.hits for track in tracks], self.cuts.max_shared_fraction)
        return survivors + self._three_hit_tracks([t.hits for t in triplets if not t.is_track])

    def _distance(self, target: int, n_skipped: int) -> np.float32:
        """From the last pair of a candidate to the next one, mm."""
        return np.float32(self.module_z[2 * target] - self.module_z[2 * (target + 1 + n_skipped)])

    def _max_skipped(self) -> int:
        return self.cuts.max_skipped_pairs

    def _hits_of(self, pair: int) -> Sequence[int]:
        return range(self.offset[pair], self.offset[pair + 1])

    def _closest(self, a: int, b: int, dz: np.float32, pair: int, limit: float, unused: bool) -> tuple[int, int]:
        """(scatter as the bits of a float, hit) of the hit closest to the line through a and b; NO_RANK if none is."""
        per_z = F(1) / (self.z[a] - self.z[b])
        tx, ty = (self.x[a] - self.x[b]) * per_z, (self.y[a] - self.y[b]) * per_z
        at_x, at_y = self.x[b] + tx * dz, self.y[b] + ty * dz
        with np.errstate(divide="ignore"):
            wanted = np.sqrt(F(limit) / (at_x * at_x + at_y * at_y)) * UNITS_PER_RADIAN + F(16)
        tolerance = int(min(wanted, F(self.cuts.max_phi_tolerance)))
        phi = int(atan2_approximate(at_y, at_x) * UNITS_PER_RADIAN) + 32768
        x0, y0 = self.x[b] - tx * self.z[b], self.y[b] - ty * self.z[b]
        best = (NO_RANK, -1)
        for group in self._window(pair, phi - tolerance, phi + tolerance):
            for place, hit in enumerate(group):
                dx = self.x[hit] - (x0 + tx * self.z[hit])
                dy = self.y[hit] - (y0 + ty * self.z[hit])
                scatter = dx * dx + dy * dy
                if scatter < F(limit) and not (unused and hit in self.used):
                    rank = (int(scatter.view(np.uint32)) & ~7) | place % 8
                    # The first one of equal ones, in a group of eight and across groups.
                    if rank & ~7 < best[0] & ~7:
                        best = (rank, hit)
        return best

    def _window(self, pair: int, low: int, high: int) -> Iterator[list[int]]:
        """The hits of the phi bins that the window touches, in one part or, where it wraps, two."""
        width = 65536 // BINS
        first, last = (low & 0xFFFF) // width, (high & 0xFFFF) // width
        bins = {hit: (int(self.phi[hit]) + 32768) // width for hit in self._hits_of(pair)}
        if first <= last:
            yield [hit for hit, at in bins.items() if first <= at <= last]
        else:
            yield [hit for hit, at in bins.items() if at >= first]
            yield [hit for hit, at in bins.items() if at <= last]

    def _forward(self, open_ones: list[Candidate], target: int, tracks: list[Candidate]) -> list[Candidate]:
        found: list[tuple[int, int]] = []
        lowest: dict[int, int] = {}
        for i, candidate in enumerate(open_ones):
            dz = self._distance(target, candidate.skipped)
            before_last, last = candidate.hits[-2:]
            rank, hit = self._closest(before_last, last, dz, target, self.cuts.max_forward_scatter, False)
            bid = rank & 0xFFFF0000 | i
            found.append((bid, hit))
            if hit >= 0:
                lowest[hit] = min(lowest.get(hit, NO_RANK), bid)
        shared_bid = int(F(self.cuts.max_shared_scatter).view(np.uint32)) & 0xFFFF0000
        still_open = []
        for candidate, (bid, hit) in zip(open_ones, found, strict=True):
            shares = hit >= 0 and lowest[hit] != bid
            if hit < 0 or (shares and (bid >= shared_bid or candidate.shares)):
                candidate.skipped += 1
                if candidate.skipped <= self._max_skipped():
                    still_open.append(candidate)
                continue
            if not candidate.is_track:
                tracks.append(candidate)
                self.used.update(candidate.hits)
            candidate.hits.append(hit)
            self.used.add(hit)
            candidate.skipped, candidate.shares = 0, shares
            still_open.append(candidate)
        return still_open

    def _seeds(self, pair: int) -> Iterator[list[int]]:
        downstream = [hit for hit in self._hits_of(pair + 1) if hit not in self.used]
        dz = self.module_z[2 * (pair - 1)] - self.module_z[2 * pair]
        for middle in self._hits_of(pair):
            if middle in self.used:
                continue
            best, seed = (NO_RANK, -1), None
            for partner in self._partners(middle, downstream):
                rank, hit = self._closest(partner, middle, dz, pair - 1, self.cuts.max_seed_scatter, True)
                if rank & ~7 < best[0] & ~7:
                    best, seed = (rank, hit), [partner, middle, hit]
            if seed is not None:
                yield seed

    def _partners(self, middle: int, downstream: list[int]) -> Iterator[int]:
        n = len(downstream)
        nearest = sum(1 for hit in downstream if self.phi[hit] < self.phi[middle])
        n_partners = self.cuts.seed_partners

        def distance_of(hit: int) -> int:
            return abs((int(self.phi[hit]) - int(self.phi[middle]) + 32768) % 65536 - 32768)

        first = 0
        if n > n_partners:
            first = nearest - n_partners // 2
            ends = [distance_of(downstream[place % n]) for place in (first - 1, nearest + n_partners // 2)]
            first -= n_partners % 2 == 1 and ends[0] <= ends[1]
        for k in range(min(n, n_partners)):
            hit = downstream[(first + k) % n]
            distance = distance_of(hit)
            slope = self.cuts.max_seed_slope
            if distance > self.cuts.seed_phi_tolerance:
                slope = self.cuts.max_displaced_slope
            dx, dy, dz = self.x[hit] - self.x[middle], self.y[hit] - self.y[middle], self.z[hit] - self.z[middle]
            steep = dx * dx + dy * dy > F(slope) * F(slope) * (dz * dz)
            if distance <= self.cuts.displaced_phi_tolerance and not steep:
                yield hit

    def _three_hit_tracks(self, seeds: list[list[int]]) -> list[list[int]]:
        good: list[tuple[int, int, list[int]]] = []
        for i, (a, b, c) in enumerate(seeds):
            if self.used & {a, b, c}:
                continue
            lever = (self.z[b] - self.z[a]) / (self.z[c] - self.z[a])
            residuals = F(0)
            for v in (self.x, self.y):
                deviation = v[b] - (v[a] + (v[c] - v[a]) * lever)
                residuals += deviation * deviation / (F(1) + lever * lever + (F(1) - lever) * (F(1) - lever))
            chi2 = F(0.5) * F(6400) * residuals
            if chi2 < F(self.cuts.max_chi2):
                good.append((int(chi2.view(np.uint32)) >> 16, i, [a, b, c]))
        owner: dict[int, tuple[int, int]] = {}
        for rank, i, hits in good:
            for hit in hits:
                owner[hit] = min(owner.get(hit, (NO_RANK, 0)), (rank, i))
        return [hits for _, i, hits in good if sum(owner[hit][1] == i for hit in hits) >= 2]


def without_clones(tracks: list[list[int]], max_shared_fraction: float) -> list[list[int]]:
    """Tracks that share at most a fraction of their hits with a longer track, or with an earlier track of equal
    length."""
    owner: dict[int, tuple[int, int]] = {}
    for i, hits in enumerate(tracks):
        for hit in hits:
            owner[hit] = max(owner.get(hit, (0, 0)), (len(hits), -i))
    return [
        hits
        for i, hits in enumerate(tracks)
        if sum(owner[hit][1] != -i for hit in hits) <= np.float32(max_shared_fraction) * len(hits)
    ]


def atan2_approximate(y: np.float32, x: np.float32) -> np.float32:
    """The polynomial of framework/device/math.cuh."""
    pi, larger, smaller = F(3.14159265358979), max(abs(x), abs(y)), min(abs(x), abs(y))
    t = smaller / larger if larger > 0 else F(0)
    s = t * t
    angle = F(-0.01172120)
    for coefficient in (0.05265332, -0.11643287, 0.19354346, -0.33262347, 0.99997726):
        angle = angle * s + F(coefficient)
    angle *= t
    if abs(y) > abs(x):
        angle = F(0.5) * pi - angle
    if x < 0:
        angle = pi - angle
    return -angle if y < 0 else angle
