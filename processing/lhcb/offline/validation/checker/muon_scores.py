"""Scores of muon identification against truth: isMuon, its chi2, the muon network, and trees
(docs/physics/muon.md)."""

from typing import Any

import numpy as np

from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.offline.validation.checker.muon_columns import MuonScores
from hltnode.processing.lhcb.offline.validation.checker.particles import MUON, ParticleTable
from hltnode.processing.offline.arrays import Float64Array, Mask
from hltnode.processing.offline.checks.counts import ratio
from hltnode.processing.selection.models.ensemble import Ensemble

NETWORK_CUTS = (0.1, 0.3, 0.5, 0.7, 0.9)
TREE_CUTS = (-2.0, -1.0, 0.0, 1.0, 2.0)
"""Cuts for which rates are given."""


class MuonScoreCounts:
    """Scores of particles that are matched to long tracks; of several tracks of a particle the best one counts.

    A track without hits in its fields of interest is identified by no score.
    """

    def __init__(self, trees: Ensemble | None) -> None:
        self._trees = trees
        self._muons: list[Float64Array] = []
        self._others: list[Float64Array] = []
        self._identified = [0, 0]

    def add(self, scores: MuonScores, is_muon: Mask, particles: ParticleTable, matches: TrackMatches) -> None:
        """Count a batch; is_muon: the decision for each long track, with its chi2."""
        of_track = np.full((len(is_muon), 4), -np.inf)
        rows = scores.has_hits
        of_track[rows, 0] = 1.0
        of_track[rows, 1] = -scores.chi2[rows]
        of_track[rows, 2] = scores.network[rows]
        if self._trees is not None and rows.any():
            of_track[rows, 3] = self._trees.sums(list(np.ascontiguousarray(scores.features[rows].T)))
        best = np.full((len(particles), 4), -np.inf)
        np.maximum.at(best, matches.particle, of_track[matches.track])
        flagged, matched = np.zeros((2, len(particles)), bool)
        matched[matches.particle] = True
        flagged[matches.particle[is_muon[matches.track]]] = True
        true_muon = np.abs(particles.pid) == MUON
        for kind, (into, chosen) in enumerate(((self._muons, true_muon), (self._others, ~true_muon))):
            into.append(best[matched & chosen])
            self._identified[kind] += int((flagged & matched & chosen).sum())

    def result(self) -> dict[str, Any]:
        """The JSON object "muon"."identification": efficiency and misidentification of isMuon alone, with its largest
        chi2, and of network and trees at some cuts; of each score also at the efficiency of isMuon with chi2.

        Rates are None without particles, "catboost" without trees.
        """
        muons, others = (np.concatenate(parts or [np.empty((0, 4))]) for parts in (self._muons, self._others))
        return {
            "is_muon": _at(muons[:, 0], others[:, 0], 1.0),
            "chi2": {
                "efficiency": ratio(self._identified[0], len(muons)),
                "misidentification": ratio(self._identified[1], len(others)),
            },
            "network": self._of_score(muons[:, 2], others[:, 2], NETWORK_CUTS),
            "catboost": None if self._trees is None else self._of_score(muons[:, 3], others[:, 3], TREE_CUTS),
        }

    def _of_score(self, muons: Float64Array, others: Float64Array, cuts: tuple[float, ...]) -> dict[str, Any]:
        rates = [_at(muons, others, cut) for cut in cuts]
        found: dict[str, Any] = {
            "cuts": list(cuts),
            "efficiency": [rate["efficiency"] for rate in rates],
            "misidentification": [rate["misidentification"] for rate in rates],
            "at_efficiency_of_chi2": None,
        }
        if n := self._identified[0]:
            cut = float(np.sort(muons)[-n])
            found["at_efficiency_of_chi2"] = {"cut": cut, **_at(muons, others, cut)}
        return found


def _at(muons: Float64Array, others: Float64Array, cut: float) -> dict[str, float | None]:
    return {
        "efficiency": ratio(int((muons >= cut).sum()), len(muons)),
        "misidentification": ratio(int((others >= cut).sum()), len(others)),
    }
