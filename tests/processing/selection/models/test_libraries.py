"""The responses of models that the libraries train here, and of LHCb's model for muons.

`make test` has XGBoost and LightGBM; `make model-libraries` installs CatBoost (97 MB) too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.selection.models.model_file import read_model
from tests.processing.selection.models.test_model_files import responses
from tests.processing.selection.models.training_data import FEATURES, candidates, labels

SEED = 11
ASKED = np.concatenate([candidates(np.random.default_rng(SEED), 300), candidates(np.random.default_rng(SEED + 1), 50)])
GIVEN = np.concatenate([candidates(np.random.default_rng(SEED + 1), 600)])


def difference(path: Path, expected: NDArray[Any], asked: NDArray[np.float32] = ASKED) -> float:
    """The largest difference of responses; of numbers above 1, relative to them."""
    found = responses(read_model(path), asked)
    return float((np.abs(found - expected) / np.maximum(1.0, np.abs(expected))).max())


@pytest.mark.parametrize("objective", ["binary:logistic", "reg:squarederror", "rank:pairwise"])
def test_xgboost(tmp_path: Path, objective: str) -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost-cpu is not installed")
    data = xgboost.DMatrix(GIVEN, labels(GIVEN), feature_names=list(FEATURES))
    if objective.startswith("rank"):
        data.set_group([50] * 12)
    options = {"objective": objective, "max_depth": 5, "nthread": 1, "num_parallel_tree": 2, "subsample": 0.8}
    booster = xgboost.train(options, data, 30)
    booster.save_model(tmp_path / "model.json")
    assert (
        difference(tmp_path / "model.json", booster.predict(xgboost.DMatrix(ASKED, feature_names=list(FEATURES))))
        < 1e-5
    )


@pytest.mark.parametrize("objective", ["binary", "cross_entropy", "regression", "lambdarank"])
def test_lightgbm(tmp_path: Path, objective: str) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    group = [50] * 12 if objective == "lambdarank" else None
    data = lightgbm.Dataset(GIVEN, labels(GIVEN), group=group, feature_name=list(FEATURES))
    booster = lightgbm.train({"objective": objective, "verbose": -1, "num_threads": 1, "sigmoid": 0.8}, data, 30)
    booster.save_model(tmp_path / "model.txt")
    (tmp_path / "model.json").write_text(json.dumps(booster.dump_model()))
    never_missing = ASKED.copy()
    never_missing[::3, 1] = np.nan
    for name in ("model.txt", "model.json"):
        for asked in (ASKED, never_missing):
            assert difference(tmp_path / name, booster.predict(asked), asked) < 1e-5


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_catboost(tmp_path: Path, nan_mode: str) -> None:
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    options = {"iterations": 30, "depth": 6, "nan_mode": nan_mode, "verbose": 0, "allow_writing_files": False}
    classifier = catboost.CatBoostClassifier(**options, thread_count=1).fit(
        catboost.Pool(GIVEN, labels(GIVEN), feature_names=list(FEATURES))
    )
    classifier.save_model(str(tmp_path / "model.json"), format="json")
    assert difference(tmp_path / "model.json", classifier.predict_proba(ASKED, thread_count=1)[:, 1]) < 1e-5


def test_the_muon_model_gives_the_sums_of_catboost(shared: Path) -> None:
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    path = shared / "data" / "lhcb-parameters" / "muon_catboost_model.json"
    model = read_model(path)
    rng = np.random.default_rng(SEED)
    of_feature = [info["borders"] for info in json.loads(path.read_text())["features_info"]["float_features"]]
    # Numbers at a border and on both sides of it.
    inputs = np.stack(
        [
            np.array(rng.choice(borders, 3000), np.float32) + rng.choice([-0.01, 0.0, 0.01], 3000)
            for borders in of_feature
        ],
        axis=1,
    ).astype(np.float32)
    library = catboost.CatBoost({"thread_count": 1})
    library.load_model(str(path), format="json")
    expected = library.predict(inputs, prediction_type="RawFormulaVal", thread_count=1)
    assert np.ptp(expected) > 3.0
    assert np.abs(model.trees.sums(list(inputs.T)) - expected).max() < 1e-5
