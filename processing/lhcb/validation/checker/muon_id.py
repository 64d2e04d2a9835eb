"""Muon identification of long tracks against truth (docs/physics/validation.md)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hltnode.processing.lhcb.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.validation.checker.particles import MUON, Mask, ParticleTable
from hltnode.processing.lhcb.validation.checker.stage_counts import ratio


@dataclass(slots=True)
class FlaggedCounts:
    """Particles (or tracks) of a kind, and those of them that are identified as muons."""

    total: int = 0
    flagged: int = 0

    def add(self, chosen: Mask, flagged: Mask) -> None:
        self.total += int(chosen.sum())
        self.flagged += int((chosen & flagged).sum())


class MuonIdCounts:
    """Counts over particles matched to long tracks, and over ghosts; a particle counts once."""

    def __init__(self) -> None:
        self.particles = FlaggedCounts()
        self.matched = FlaggedCounts()
        self.muons = FlaggedCounts()
        self.muons_from_strange = FlaggedCounts()
        self.muons_from_beauty = FlaggedCounts()
        self.not_muons = FlaggedCounts()
        self.ghosts = FlaggedCounts()

    def add(self, is_muon: Mask, particles: ParticleTable, matches: TrackMatches) -> None:
        """Count a batch; is_muon: the answer for each long track."""
        true_muon = np.abs(particles.pid) == MUON
        matched = np.zeros(len(particles), dtype=bool)
        matched[matches.particle] = True
        flagged = np.zeros(len(particles), dtype=bool)
        flagged[matches.particle[is_muon[matches.track]]] = True
        ghost = np.ones(len(is_muon), dtype=bool)
        ghost[matches.track] = False
        self.particles.add(np.ones(len(particles), dtype=bool), true_muon)
        self.matched.add(matched, true_muon)
        self.muons.add(matched & true_muon, flagged)
        self.muons_from_strange.add(matched & true_muon & particles.from_strange, flagged)
        self.muons_from_beauty.add(matched & true_muon & particles.from_beauty, flagged)
        self.not_muons.add(matched & ~true_muon, flagged)
        self.ghosts.add(ghost, is_muon)

    def result(self) -> dict[str, Any]:
        """The JSON object "muon"; rates are None if the denominator is 0."""
        return {
            "muons": self.muons.total,
            "efficiency": ratio(self.muons.flagged, self.muons.total),
            "misidentification": ratio(self.not_muons.flagged, self.not_muons.total),
            "ghosts_identified": ratio(self.ghosts.flagged, self.ghosts.total),
        }
