"""Counts of one tracking stage: efficiencies by category, ghosts, and both in bins of p, pt, eta, phi, vertices.

All rates are fractions between 0 and 1; a rate over nothing (an empty category, no tracks) is None.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hltnode.processing.lhcb.offline.validation.checker.binning import PARTICLE_BINNINGS, TRACK_BINNINGS
from hltnode.processing.lhcb.offline.validation.checker.categories import CATEGORIES, DETECTOR_UNDER_TEST, Stage
from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.offline.arrays import Int64Array, Mask
from hltnode.processing.offline.checks.counts import BinnedCounts, CategoryCounts, ratio

# The second line of ghosts of long tracks counts those above (MeV).
GHOST_P, GHOST_PT = 3000.0, 500.0

# Categories with plots; all others are single numbers.
DRAWN = frozenset({"velo_eta25", "long", "long_from_b", "electrons_long", "velo_ut"})


@dataclass(slots=True)
class VeloCategoryCounts(CategoryCounts):
    """With the hits at the ends of VELO tracks: sums over all matched tracks, clones included."""

    first_hits: float = 0.0
    last_hits: float = 0.0

    def result(self) -> dict[str, Any]:
        """The JSON object of the category."""
        return CategoryCounts.result(self) | {
            "hit_efficiency_first3": ratio(self.first_hits, self.tracks),
            "hit_efficiency_last": ratio(self.last_hits, self.tracks),
        }


class StageCounts:
    """Everything that is counted for one tracking stage; batches are added one at a time."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.tracks = 0
        self.ghosts = 0
        self.tracks_above = 0
        self.ghosts_above = 0
        counts = VeloCategoryCounts if stage is Stage.VELO else CategoryCounts
        self.categories = [(category, counts()) for category in CATEGORIES[stage]]
        self.binned: dict[str, dict[str, BinnedCounts]] = {}
        self.binned_tracks: dict[str, BinnedCounts] = {}

    def category(self, name: str) -> CategoryCounts:
        """The counts of a category by its name in JSON. Raises KeyError."""
        return {category.name: counts for category, counts in self.categories}[name]

    def add(self, tracks: TrackTable, particles: ParticleTable, matches: TrackMatches) -> None:
        """Count the tracks and particles of a batch."""
        is_ghost = np.ones(len(tracks), dtype=bool)
        is_ghost[matches.track] = False
        self.tracks += len(tracks)
        self.ghosts += int(is_ghost.sum())
        if tracks.p is not None and tracks.pt is not None:
            above = (tracks.p > GHOST_P) & (tracks.pt > GHOST_PT)
            self.tracks_above += int(above.sum())
            self.ghosts_above += int((above & is_ghost).sum())
        self._add_binned_tracks(tracks, is_ghost, particles)
        n_tracks_of = np.bincount(matches.particle, minlength=len(particles))
        bins = {name: binning.bins_of(getattr(particles, name)) for name, binning in PARTICLE_BINNINGS.items()}
        for category, counts in self.categories:
            members = category.belongs(particles)
            if members.any():
                self._add_category(counts, members, n_tracks_of, particles, matches)
                if category.name in DRAWN:
                    self._add_binned(category.name, members, n_tracks_of, matches, bins)

    def _add_category(
        self,
        counts: CategoryCounts,
        members: Mask,
        n_tracks_of: Int64Array,
        particles: ParticleTable,
        matches: TrackMatches,
    ) -> None:
        found = members & (n_tracks_of > 0)
        chosen = members[matches.particle]
        counts.reconstructible += int(members.sum())
        counts.reconstructed += int(found.sum())
        counts.clones += int(chosen.sum()) - int(found.sum())
        counts.purities += float(matches.purity[chosen].sum())
        counts.hit_efficiencies += float(matches.hit_efficiency[chosen, DETECTOR_UNDER_TEST[self.stage]].sum())
        if isinstance(counts, VeloCategoryCounts):
            counts.first_hits += float(matches.first_hits[chosen].sum())
            counts.last_hits += float(matches.last_hit[chosen].sum())
        of_events = np.bincount(particles.event[members], minlength=particles.n_events)
        found_of_events = np.bincount(particles.event[found], minlength=particles.n_events)
        with_members = of_events > 0
        counts.events += int(with_members.sum())
        counts.event_efficiencies += float((found_of_events[with_members] / of_events[with_members]).sum())

    def _add_binned(
        self, name: str, members: Mask, n_tracks_of: Int64Array, matches: TrackMatches, bins: dict[str, Int64Array]
    ) -> None:
        found = members & (n_tracks_of > 0)
        clones = np.maximum(n_tracks_of - 1, 0).astype(np.float64)
        chosen = members[matches.particle]
        purity = matches.purity[chosen]
        hit_efficiency = matches.hit_efficiency[chosen, DETECTOR_UNDER_TEST[self.stage]]
        of_variables = self.binned.setdefault(
            name, {variable: BinnedCounts(binning) for variable, binning in PARTICLE_BINNINGS.items()}
        )
        for variable, counts in of_variables.items():
            where = bins[variable]
            of_tracks = where[matches.particle[chosen]]
            counts.add("reconstructible", where[members])
            counts.add("reconstructed", where[found])
            counts.add("clones", where[found], clones[found])
            counts.add("tracks", of_tracks)
            counts.add("purity_sum", of_tracks, purity)
            counts.add("purity_squares", of_tracks, purity**2)
            counts.add("hit_efficiency_sum", of_tracks, hit_efficiency)
            counts.add("hit_efficiency_squares", of_tracks, hit_efficiency**2)

    def _add_binned_tracks(self, tracks: TrackTable, is_ghost: Mask, particles: ParticleTable) -> None:
        n_pvs_of_event = np.zeros(particles.n_events, dtype=np.int64)
        n_pvs_of_event[particles.event] = particles.n_pvs
        values = {
            "p": tracks.p,
            "pt": tracks.pt,
            "eta": tracks.eta,
            "phi": tracks.phi,
            "n_pvs": n_pvs_of_event[tracks.event],
        }
        for name, of_tracks in values.items():
            if of_tracks is not None:
                bins = TRACK_BINNINGS[name].bins_of(of_tracks)
                counts = self.binned_tracks.setdefault(name, BinnedCounts(TRACK_BINNINGS[name]))
                counts.add("tracks", bins)
                counts.add("ghosts", bins[is_ghost])

    def result(self) -> dict[str, Any]:
        """The JSON object of the stage."""
        result: dict[str, Any] = {"ghost_rate": ratio(self.ghosts, self.tracks)}
        if self.tracks_above:
            result["ghost_rate_p3_pt05"] = ratio(self.ghosts_above, self.tracks_above)
        result["categories"] = {
            category.name: counts.result() for category, counts in self.categories if category.name is not None
        }
        return result

    def lines(self) -> dict[str, Any]:
        """The JSON object of the lines of the text, by their names in the text."""
        return {
            "tracks": self.tracks,
            "ghosts": self.ghosts,
            "categories": {
                category.label: counts.line() for category, counts in self.categories if category.label is not None
            },
        }

    def histograms(self) -> dict[str, Any]:
        """The JSON object of the binned sums, from which every plot of the stage is drawn."""
        return {
            "categories": {
                name: {variable: counts.result() for variable, counts in of_variables.items()}
                for name, of_variables in self.binned.items()
            },
            "tracks": {variable: counts.result() for variable, counts in self.binned_tracks.items()},
        }
