"""The checker: efficiencies, ghosts, clones, purity and hit efficiency against Monte Carlo truth, as Allen counts.

Rules: reconstruction-facts.md 9 and hlt1-allen.md 6.1. All rates are fractions between 0 and 1; a rate over nothing
(an empty category, no tracks) is None.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.validation.matching import TrackMatches, match_velo_tracks
from hltnode.processing.validation.particles import VELO_CATEGORIES, Mask, ParticleTable
from hltnode.processing.validation.vertices import VertexCounts
from hltnode.protocol.truth import McParticle, McVertex


def ratio(part: float, whole: float) -> float | None:
    """part / whole, None if there is nothing to divide by."""
    return part / whole if whole else None


@dataclass(slots=True)
class CategoryCounts:
    """Counts of one category of particles, summed over events.

    `clones` are further tracks of a particle after its first; `purities` and `hit_efficiencies` are sums over all
    matched tracks, clones included; `event_efficiencies` over the `events` that have a particle of the category.
    """

    reconstructible: int = 0
    reconstructed: int = 0
    clones: int = 0
    purities: float = 0.0
    hit_efficiencies: float = 0.0
    events: int = 0
    event_efficiencies: float = 0.0

    def add_event(self, members: Mask, matches: TrackMatches) -> None:
        """Count the particles `members` (bool[particles]) of an event and the tracks that belong to them."""
        n_members = int(members.sum())
        if n_members == 0:
            return
        chosen = members[matches.particle]
        n_found = len(np.unique(matches.particle[chosen]))
        self.reconstructible += n_members
        self.reconstructed += n_found
        self.clones += int(chosen.sum()) - n_found
        self.purities += float(matches.purity[chosen].sum())
        self.hit_efficiencies += float(matches.hit_efficiency[chosen].sum())
        self.events += 1
        self.event_efficiencies += n_found / n_members

    @property
    def efficiency(self) -> float | None:
        return ratio(self.reconstructed, self.reconstructible)

    @property
    def efficiency_per_event(self) -> float | None:
        return ratio(self.event_efficiencies, self.events)

    @property
    def clone_rate(self) -> float | None:
        return ratio(self.clones, self.reconstructed + self.clones)

    @property
    def hit_purity(self) -> float | None:
        return ratio(self.purities, self.reconstructed + self.clones)

    @property
    def hit_efficiency(self) -> float | None:
        return ratio(self.hit_efficiencies, self.reconstructed + self.clones)


class Checker:
    """Accumulates the comparison of reconstructed events with their truth.

    Events go in one at a time (`add_event`), in any order; `result` gives the numbers of all events so far.
    """

    def __init__(self) -> None:
        self.events = 0
        self.tracks = 0
        self.ghosts = 0
        self.categories = {name: CategoryCounts() for name in VELO_CATEGORIES}
        self.vertices: VertexCounts | None = None

    def add_event(
        self,
        tracks: Sequence[NDArray[np.uint32]],
        pvs: NDArray[np.float32],
        particles: Sequence[McParticle],
        vertices: Sequence[McVertex] | None,
    ) -> None:
        """Compare one event.

        tracks: the LHCbIDs (u32) of each VELO track; pvs: f32[n, 4] = x, y, z (mm) and variance of z (mm^2);
        particles, vertices: its truth banks; vertices is None for a sample whose truth has no collisions.
        """
        table = ParticleTable.of_event(particles)
        matches = match_velo_tracks(tracks, table)
        self.events += 1
        self.tracks += len(tracks)
        self.ghosts += len(tracks) - len(np.unique(matches.track))
        for name, belongs in VELO_CATEGORIES.items():
            self.categories[name].add_event(belongs(table), matches)
        if vertices is not None:
            if self.vertices is None:
                self.vertices = VertexCounts()
            self.vertices.add_event(pvs, vertices)

    def result(self) -> dict[str, Any]:
        """The JSON object of `hltnode validate`; rates are fractions 0..1, None where there is nothing to divide by."""
        return {
            "velo": {
                "ghost_rate": ratio(self.ghosts, self.tracks),
                "categories": {
                    name: {
                        "reconstructible": counts.reconstructible,
                        "reconstructed": counts.reconstructed,
                        "efficiency": counts.efficiency,
                        "clone_rate": counts.clone_rate,
                        "hit_purity": counts.hit_purity,
                        "hit_efficiency": counts.hit_efficiency,
                    }
                    for name, counts in self.categories.items()
                },
            },
            "pv": None
            if self.vertices is None
            else {
                "reconstructible": self.vertices.reconstructible,
                "reconstructed": self.vertices.reconstructed,
                "efficiency": ratio(self.vertices.reconstructed, self.vertices.reconstructible),
                "false_rate": ratio(self.vertices.false, self.vertices.vertices),
            },
        }
