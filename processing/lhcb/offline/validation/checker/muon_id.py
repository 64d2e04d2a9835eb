"""Muon identification of long tracks against truth (docs/physics/validation.md)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.offline.validation.checker.particles import MUON, ParticleTable
from hltnode.processing.offline.arrays import Mask
from hltnode.processing.offline.checks.counts import ratio


@dataclass(slots=True)
class FlaggedCounts:
    """Particles (or tracks) of a kind, and those of them that are identified as muons."""

    total: int = 0
    flagged: int = 0

    def add(self, chosen: Mask, flagged: Mask) -> None:
        self.total += int(chosen.sum())
        self.flagged += int((chosen & flagged).sum())


# Muons of less momentum (MeV) may not reach M4 and M5, so rates above it are given too.
HARD_P = 6000.0


class MuonIdCounts:
    """Counts over particles matched to long tracks, and over ghosts; a particle counts once.

    `hard_...`: of particles above 6 GeV; `crossing_...`: of those the ones with a track whose line passes all stations.
    """

    def __init__(self) -> None:
        self.particles = FlaggedCounts()
        self.matched = FlaggedCounts()
        self.muons = FlaggedCounts()
        self.muons_from_strange = FlaggedCounts()
        self.muons_from_beauty = FlaggedCounts()
        self.not_muons = FlaggedCounts()
        self.ghosts = FlaggedCounts()
        self.hard_muons = FlaggedCounts()
        self.hard_not_muons = FlaggedCounts()
        self.crossing_muons = FlaggedCounts()
        self.crossing_not_muons = FlaggedCounts()

    def add(self, is_muon: Mask, passes: Mask, particles: ParticleTable, matches: TrackMatches) -> None:
        """Count a batch; is_muon: the answer for each long track; passes: whether its line passes all stations."""
        true_muon = np.abs(particles.pid) == MUON
        matched, flagged, crossing = np.zeros((3, len(particles)), dtype=bool)
        matched[matches.particle] = True
        flagged[matches.particle[is_muon[matches.track]]] = True
        crossing[matches.particle[passes[matches.track]]] = True
        hard = matched & (particles.p > HARD_P)
        ghost = np.ones(len(is_muon), dtype=bool)
        ghost[matches.track] = False
        self.particles.add(np.ones(len(particles), dtype=bool), true_muon)
        self.matched.add(matched, true_muon)
        self.muons.add(matched & true_muon, flagged)
        self.muons_from_strange.add(matched & true_muon & particles.from_strange, flagged)
        self.muons_from_beauty.add(matched & true_muon & particles.from_beauty, flagged)
        self.not_muons.add(matched & ~true_muon, flagged)
        self.ghosts.add(ghost, is_muon)
        self.hard_muons.add(hard & true_muon, flagged)
        self.hard_not_muons.add(hard & ~true_muon, flagged)
        self.crossing_muons.add(hard & crossing & true_muon, flagged)
        self.crossing_not_muons.add(hard & crossing & ~true_muon, flagged)

    def result(self) -> dict[str, Any]:
        """The JSON object "muon"; rates are None if the denominator is 0."""
        return {
            **_rates(self.muons, self.not_muons),
            "ghosts_identified": ratio(self.ghosts.flagged, self.ghosts.total),
            "p6": _rates(self.hard_muons, self.hard_not_muons),
            "p6_through_all_stations": _rates(self.crossing_muons, self.crossing_not_muons),
        }


def _rates(muons: FlaggedCounts, others: FlaggedCounts) -> dict[str, Any]:
    return {
        "muons": muons.total,
        "efficiency": ratio(muons.flagged, muons.total),
        "misidentification": ratio(others.flagged, others.total),
    }
