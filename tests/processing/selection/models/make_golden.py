"""Writes small models of the three libraries, and the responses that they give, into `golden`.

    python -m tests.processing.selection.models.make_golden [xgboost] [lightgbm] [catboost]

`make test` compares with these files, so that it needs no library. test_libraries.py trains other models each time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.processing.selection.models.training_data import FEATURES, candidates, labels, lists

GOLDEN = Path(__file__).parent / "golden"


def xgboost(given: NDArray[np.float32], asked: NDArray[np.float32]) -> Any:
    """Responses of a model in xgboost.json. Its thresholds are numbers of the training."""
    import xgboost

    matrix = xgboost.DMatrix(given, labels(given), feature_names=list(FEATURES))
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 3, "nthread": 1}, matrix, 6)
    booster.save_model(GOLDEN / "xgboost.json")
    return booster.predict(xgboost.DMatrix(asked, feature_names=list(FEATURES)))


def lightgbm(given: NDArray[np.float32], asked: NDArray[np.float32]) -> Any:
    """Responses of a model in lightgbm.txt and lightgbm.json."""
    import lightgbm

    options = {"objective": "binary", "num_leaves": 7, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(options, lightgbm.Dataset(given, labels(given), feature_name=list(FEATURES)), 6)
    booster.save_model(GOLDEN / "lightgbm.txt")
    (GOLDEN / "lightgbm.json").write_text(json.dumps(booster.dump_model()))
    return booster.predict(asked)


def catboost(given: NDArray[np.float32], asked: NDArray[np.float32]) -> Any:
    """Responses of a model in catboost.json. Some of the candidates get borders of the model as numbers."""
    import catboost

    classifier = catboost.CatBoostClassifier(
        iterations=6, depth=3, nan_mode="Max", thread_count=1, verbose=0, allow_writing_files=False
    ).fit(catboost.Pool(given, labels(given), feature_names=list(FEATURES)))
    classifier.save_model(str(GOLDEN / "catboost.json"), format="json")
    content = json.loads((GOLDEN / "catboost.json").read_text())
    for feature, info in enumerate(content["features_info"]["float_features"]):
        borders = np.array(info["borders"], np.float32)
        asked[20:, feature] = np.resize(borders, 20) if len(borders) else asked[20:, feature]
    return classifier.predict_proba(asked, thread_count=1)[:, 1]


def main(libraries: list[str]) -> None:
    """Train, save and predict."""
    GOLDEN.mkdir(exist_ok=True)
    for name in libraries:
        given = candidates(np.random.default_rng(7), 500)
        asked = np.concatenate([candidates(np.random.default_rng(8), 20), given[100:120]])
        responses = {"xgboost": xgboost, "lightgbm": lightgbm, "catboost": catboost}[name](given, asked)
        content = {"inputs": lists(asked), "responses": [float(value) for value in responses]}
        (GOLDEN / f"{name}.responses.json").write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:] or ["xgboost", "lightgbm", "catboost"])
