"""Which Monte Carlo collision a reconstructed primary vertex belongs to (reconstruction-facts.md 9)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.truth import McVertex

# A collision counts as reconstructible with this many charged particles that cross the VELO.
MIN_TRACKS = 4
# A vertex belongs to the nearest collision within this many of its own standard deviations in z.
MAX_SIGMA = 5.0


@dataclass(slots=True)
class VertexCounts:
    """Counts of primary vertices, summed over events."""

    reconstructible: int = 0
    reconstructed: int = 0
    vertices: int = 0
    false: int = 0

    def add_event(self, pvs: NDArray[np.float32], collisions: Sequence[McVertex]) -> None:
        """Count an event: pvs f32[n, 4] = x, y, z (mm), variance of z (mm^2); all collisions take part in the matching.

        `reconstructed` counts reconstructible collisions with at least one vertex. (Allen also adds matched collisions
        of fewer than four tracks to this number, which can lift its efficiency above 1.)
        """
        z = np.array([vertex.z for vertex in collisions], dtype=np.float64)
        reconstructible = np.array([vertex.n_tracks >= MIN_TRACKS for vertex in collisions], dtype=bool)
        self.reconstructible += int(reconstructible.sum())
        self.vertices += len(pvs)
        if len(collisions) == 0:
            self.false += len(pvs)
            return
        distance = np.abs(np.asarray(pvs, dtype=np.float64)[:, 2, None] - z)
        nearest = distance.argmin(axis=1)
        matched = distance.min(axis=1) < MAX_SIGMA * np.sqrt(pvs[:, 3])
        self.false += int((~matched).sum())
        found = np.zeros(len(collisions), dtype=bool)
        found[nearest[matched]] = True
        self.reconstructed += int((found & reconstructible).sum())
