"""Scores of muon identification in the checker: the best track counts, and rates at equal efficiency."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.muon.collections import FEATURES
from hltnode.processing.lhcb.offline.tools.validation import LhcbTruthCheck, ValidationOptions
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.muon_columns import MuonScores
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models.ensemble import Ensemble, ObliviousTree, Split
from tests.processing.lhcb.offline.validation.test_long_checks import long_particle, long_tracks

TREES = Ensemble.of_trees([ObliviousTree([Split(12, 0.0, False)], [-1.5, 2.5])], len(FEATURES), 0.0)
"""2.5 where the residual in x of M2 is positive."""
MODELS = Path(__file__).parents[3] / "selection" / "models" / "golden"


def scores(has_hits: list[bool], network: list[float], residual: list[float]) -> MuonScores:
    features = np.zeros((len(has_hits), len(FEATURES)), np.float32)
    features[:, 12] = residual
    return MuonScores(np.array(has_hits), np.full(len(has_hits), 3.0), np.array(network), features)


def checked(trees: Ensemble | None) -> Checker:
    """Three muons and two others; the first muon has two tracks, the last muon no hits."""
    particles = [*(long_particle(i, pid=13) for i in (1, 2, 3)), long_particle(4), long_particle(5)]
    tracks = replace(
        long_tracks(1, 1, 2, 3, 4, 5),
        is_muon=np.array([False, True, True, False, True, False]),
        muon_scores=scores(
            [True, True, True, False, True, True], [0.2, 0.8, 0.6, 0.0, 0.95, 0.4], [1, -1, -1, 1, 1, -1]
        ),
    )
    checker = Checker(trees)
    checker.add(ParticleTable.of_particles([particles]), {Stage.LONG: tracks})
    return checker


def test_rates_of_all_scores_are_counted_by_particle() -> None:
    found = checked(TREES).result()["muon"]["identification"]
    assert found["is_muon"] == {"efficiency": pytest.approx(2 / 3), "misidentification": 1.0}
    assert found["chi2"] == {"efficiency": pytest.approx(2 / 3), "misidentification": 0.5}
    network = found["network"]
    assert network["cuts"] == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert network["efficiency"] == pytest.approx([2 / 3, 2 / 3, 2 / 3, 1 / 3, 0.0])
    assert network["misidentification"] == [1.0, 1.0, 0.5, 0.5, 0.5]
    at = {"cut": 0.6, "efficiency": pytest.approx(2 / 3), "misidentification": 0.5}
    assert network["at_efficiency_of_chi2"] == at
    catboost = found["catboost"]
    assert catboost["efficiency"] == pytest.approx([2 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 3])
    assert catboost["misidentification"] == [1.0, 0.5, 0.5, 0.5, 0.5]
    assert catboost["at_efficiency_of_chi2"]["cut"] == -1.5


def test_without_trees_or_scores_their_rates_are_absent() -> None:
    assert checked(None).result()["muon"]["identification"]["catboost"] is None
    checker = Checker()
    tracks = replace(long_tracks(1), is_muon=np.array([True]))
    checker.add(ParticleTable.of_particles([[long_particle(1)]]), {Stage.LONG: tracks})
    assert "identification" not in checker.result()["muon"]


def test_trees_of_other_features_and_sequences_without_features_are_refused() -> None:
    options = ValidationOptions(muon_trees=MODELS / "catboost.json")
    with pytest.raises(ModelError, match=r"catboost\.json: its trees take 4 features, tracks have 20"):
        LhcbTruthCheck(CHAIN.with_sequence("hlt1_2026").sequence, None, options)
    with pytest.raises(ValueError, match=r"--muon-trees: the sequence makes no features of muons; hlt1_2026 does"):
        LhcbTruthCheck(CHAIN.with_sequence("forward").sequence, None, options)
