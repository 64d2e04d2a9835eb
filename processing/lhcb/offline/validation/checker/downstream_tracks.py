"""Downstream tracks against truth: efficiency, ghosts and momentum (docs/physics/validation.md).

A particle is to be found if it has hits in UT and SciFi and is not reconstructible in the VELO, 2 < eta < 5, electrons
left out. A track belongs to it by the rule of all tracks: 70 % of the SciFi hits, all UT hits but one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.lhcb.scifi.collections import NO_HIT
from hltnode.processing.lhcb.tracks.downstream.collections import (
    downstream_count,
    downstream_ghost_probability,
    downstream_hits,
    downstream_state,
    downstream_ut_hits,
)
from hltnode.processing.offline.arrays import Float64Array, Mask
from hltnode.processing.offline.checks.counts import ratio
from hltnode.processing.offline.workspace_columns import Hits, Objects

DOWNSTREAM_COLUMNS = (
    *(downstream_count, downstream_hits, downstream_ut_hits),
    *(downstream_state["qop"], downstream_ghost_probability),
)
"""Columns that an engine must retain."""
_HIGH_P = 5000.0
"""MeV."""
_SMALLEST_QOP = 1e-9
"""1/MeV."""


def wanted(t: ParticleTable) -> Mask:
    """The particles to find."""
    found: Mask = t.has_ut & t.has_scifi & ~t.has_velo & t.in_acceptance & ~t.is_electron
    return found


CATEGORIES: dict[str, tuple[str, Callable[[ParticleTable], Mask]]] = {
    "all": ("all but electrons", wanted),
    "all_p5": ("all but electrons, P>5GeV", lambda t: wanted(t) & (t.p > _HIGH_P)),
    "strange": ("of strange particles", lambda t: wanted(t) & t.from_strange),
    "strange_p5": ("of strange particles, P>5GeV", lambda t: wanted(t) & t.from_strange & (t.p > _HIGH_P)),
}
"""Text and members of each category, by its name in JSON."""


def has_downstream(sequence: AlgorithmSequence) -> bool:
    """Whether a sequence makes downstream tracks."""
    return set(DOWNSTREAM_COLUMNS) <= set(sequence.columns)


def read_downstream(of: Objects, ut: Hits, scifi: Hits) -> TrackTable:
    """The downstream tracks of a batch; `of` their collection, `ut` and `scifi` the ids of hits."""
    places = of(downstream_hits)
    ids = np.concatenate(
        (
            scifi.of_tracks(of.event, places, places != NO_HIT),
            ut.of_tracks(of.event, hits := of(downstream_ut_hits), hits != NO_HIT),
        ),
        axis=1,
    )
    used = ids != 0
    return TrackTable(
        event=of.event,
        ids=ids[used],
        n_ids=used.sum(axis=1),
        p=1.0 / np.maximum(np.abs(of(downstream_state["qop"]).astype(np.float64)), _SMALLEST_QOP),
        cuts={"ghost_probability": of(downstream_ghost_probability).astype(np.float64)},
    )


@dataclass(slots=True)
class _Category:
    """Particles to find, and those found."""

    particles: int = 0
    found: int = 0


class DownstreamTrackCounts:
    """The comparison of downstream tracks with truth, summed over events."""

    def __init__(self) -> None:
        self.events = 0
        self.tracks = 0
        self.ghosts = 0
        self.categories = {name: _Category() for name in CATEGORIES}
        self._momentum: list[Float64Array] = []

    def add(self, particles: ParticleTable, tracks: TrackTable, matches: TrackMatches) -> None:
        """Count a batch."""
        is_found = np.zeros(len(particles), dtype=bool)
        is_found[matches.particle] = True
        self.events += particles.n_events
        self.tracks += len(tracks)
        self.ghosts += len(tracks) - len(np.unique(matches.track))
        for name, counts in self.categories.items():
            members = CATEGORIES[name][1](particles)
            counts.particles += int(members.sum())
            counts.found += int((members & is_found).sum())
        chosen = wanted(particles)[matches.particle]
        if tracks.p is not None:
            true = particles.p[matches.particle[chosen]]
            self._momentum.append(tracks.p[matches.track[chosen]] / true - 1.0)

    def result(self) -> dict[str, Any]:
        """The JSON object "tracks" of "downstream"; `momentum`: of (p - true p) / true p the median, and 68 % of its
        size."""
        changes = np.concatenate([np.empty(0), *self._momentum])
        return {
            "tracks": self.tracks,
            "per_event": ratio(self.tracks, self.events),
            "ghosts": self.ghosts,
            "ghost_rate": ratio(self.ghosts, self.tracks),
            "efficiency": {
                name: {
                    "particles": counts.particles,
                    "found": counts.found,
                    "efficiency": ratio(counts.found, counts.particles),
                }
                for name, counts in self.categories.items()
            },
            "momentum": {
                "tracks": len(changes),
                "median": float(np.median(changes)) if len(changes) else None,
                "size_68": float(np.quantile(np.abs(changes), 0.68)) if len(changes) else None,
            },
        }
