"""Track following in slow and simple code: each line is compared with every hit of a plane, without look-up tables.

Parts shared with search by triplet (partners, bids, three-hit tracks) are in search_by_triplet_oracle.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tests.processing.lhcb.velo.search_by_triplet_oracle import N_PAIRS, NO_RANK, Candidate, F, Search, without_clones

Steps = Iterator[tuple[int, list[tuple[int, int, int]]]]
"""The plane upstream, and the triplets of planes that end there."""


@dataclass(slots=True, kw_only=True)
class Following(Search):
    """One event, like Search; `ids`: LHCbIDs u32[n], which tell the planes of single modules apart."""

    ids: NDArray[np.uint32]
    planes: list[Sequence[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.planes = [range(self.offset[pair], self.offset[pair + 1]) for pair in range(N_PAIRS)]
        if self.cuts.plane_kind != 0:
            module = self.ids >> 20 & 63
            self.planes = [[hit for hit in self.planes[m // 2] if module[hit] == m] for m in range(2 * N_PAIRS)]

    def tracks(self) -> list[list[int]]:
        tracks: list[Candidate] = []
        triplets: list[Candidate] = []
        for steps in self._steps():
            open_ones: list[Candidate] = []
            for up, seeds in steps:
                open_ones = self._forward(open_ones, up, tracks)
                for planes in seeds:
                    new = [Candidate(hits) for hits in self._triplets(*planes)]
                    triplets += new
                    open_ones += new
        survivors = without_clones([track.hits for track in tracks], self.cuts.max_shared_fraction)
        return survivors + self._three_hit_tracks([t.hits for t in triplets if not t.is_track])

    def _steps(self) -> Iterator[Steps]:
        """The steps of all pairs, of the pairs of one half and then of the other, or of all modules."""
        if self.cuts.plane_kind == 0:
            yield ((up, [(up + 2, up + 1, up)]) for up in range(N_PAIRS - 3, -1, -1))
        elif self.cuts.plane_kind == 1:
            for side in (0, 1):
                yield (
                    (2 * up + side, [(2 * up + 4 + side, 2 * up + 2 + side, 2 * up + side)])
                    for up in range(N_PAIRS - 3, -1, -1)
                )
        else:
            n = 2 * N_PAIRS
            spaces = ((2, 2), (1, 2), (2, 1), (1, 1))
            yield ((up, [(up + a + b, up + a, up) for a, b in spaces if up + a + b < n]) for up in range(n - 3, -1, -1))

    def _distance(self, target: int, n_skipped: int) -> np.float32:
        """Not used: hits have their own z."""
        return F(0)

    def _max_skipped(self) -> int:
        return 2 * self.cuts.max_skipped_pairs + 1 if self.cuts.plane_kind == 2 else self.cuts.max_skipped_pairs

    def _hits_of(self, pair: int) -> Sequence[int]:
        return self.planes[pair]

    def _closest(self, a: int, b: int, dz: np.float32, pair: int, limit: float, unused: bool) -> tuple[int, int]:
        per_z = F(1) / (self.z[a] - self.z[b])
        tx, ty = (self.x[a] - self.x[b]) * per_z, (self.y[a] - self.y[b]) * per_z
        x0, y0 = self.x[b] - tx * self.z[b], self.y[b] - ty * self.z[b]
        hits = np.array([hit for hit in self._hits_of(pair) if not (unused and hit in self.used)], dtype=int)
        dx = self.x[hits] - (x0 + tx * self.z[hits])
        dy = self.y[hits] - (y0 + ty * self.z[hits])
        scatter = dx * dx + dy * dy
        near = np.flatnonzero(scatter < F(limit))
        if len(near) == 0:
            return NO_RANK, -1
        best = near[np.argmin(scatter[near])]  # the first one of equal ones
        return int(scatter[best].view(np.uint32)), int(hits[best])

    def _triplets(self, down: int, of_middle: int, up: int) -> Iterator[list[int]]:
        downstream = [hit for hit in self._hits_of(down) if hit not in self.used]
        for middle in self._hits_of(of_middle):
            if middle in self.used:
                continue
            best, seed = NO_RANK, None
            for partner in self._partners(middle, downstream):
                rank, hit = self._closest(partner, middle, F(0), up, self.cuts.max_seed_scatter, True)
                if rank < best:
                    best, seed = rank, [partner, middle, hit]
            if seed is not None:
                yield seed
