"""Track following in slow and simple code: each line is compared with every hit of a plane, without look-up tables.

Parts shared with search by triplet (partners, bids, three-hit tracks) are in search_by_triplet_oracle.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.processing.lhcb.velo.search_by_triplet_oracle import NO_RANK, F, Search


@dataclass(slots=True)
class Following(Search):
    """One event, like Search."""

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

    def _seeds(self, pair: int) -> Iterator[list[int]]:
        downstream = [hit for hit in self._hits_of(pair + 1) if hit not in self.used]
        for middle in self._hits_of(pair):
            if middle in self.used:
                continue
            best, seed = NO_RANK, None
            for partner in self._partners(middle, downstream):
                rank, hit = self._closest(partner, middle, F(0), pair - 1, self.cuts.max_seed_scatter, True)
                if rank < best:
                    best, seed = rank, [partner, middle, hit]
            if seed is not None:
                yield seed
