"""The responses of networks and trees that scikit-learn trains here, beside those of onnxruntime. `make
model-libraries` installs both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from hltnode.processing.selection.models.model_file import model_of
from tests.processing.selection.models.networks import make_golden
from tests.processing.selection.models.networks.onnx_writer import Values
from tests.processing.selection.models.networks.test_onnx_file import responses
from tests.processing.selection.models.test_model_files import responses as responses_of_trees
from tests.processing.selection.models.test_onnx_trees import CLASSES, NUMBER, TWO_SUMS, TWO_TREES, trees

INPUTS = make_golden.asked(500, seed=9)


def difference(model: Any) -> float:
    expected = np.array(make_golden.responses(model, INPUTS))
    assert np.ptp(expected) > 0.1
    found = responses(model_of(model.SerializeToString()), INPUTS)
    return float((np.abs(found - expected) / np.maximum(1.0, np.abs(expected))).max())


@pytest.mark.parametrize("activation", ["relu", "logistic", "tanh"])
@pytest.mark.parametrize("classifier", [True, False])
def test_perceptrons_of_scikit_learn(activation: str, classifier: bool) -> None:
    for package in ("onnxruntime", "sklearn", "skl2onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    model = make_golden.perceptron(activation, classifier=classifier, layers=(100, 20), zipmap=activation == "relu")
    assert difference(model) < 1e-5


@pytest.mark.parametrize("sizes", [(4, 1), (4, 64, 64, 1), (4, 128, 64, 32, 16, 1)])
def test_layers_of_torch(sizes: tuple[int, ...]) -> None:
    for package in ("onnxruntime", "onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    assert difference(make_golden.layers_of_torch(11, sizes)) < 1e-5


@pytest.mark.parametrize("kind", ["boosted", "forest", "boosted numbers", "forest of numbers"])
def test_trees_of_scikit_learn(kind: str) -> None:
    for package in ("onnxruntime", "sklearn", "skl2onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    model = make_golden.trees(kind, zipmap=kind == "boosted")
    expected = np.array(make_golden.responses(model, INPUTS))
    assert np.ptp(expected) > 0.1
    found = responses_of_trees(model_of(model.SerializeToString()), INPUTS)
    assert (np.abs(found - expected) / np.maximum(1.0, np.abs(expected))).max() < 1e-5


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
@pytest.mark.parametrize("tracks_true", [0, 1])
@pytest.mark.parametrize(
    ("attributes", "changes"),
    [
        (NUMBER, {"base_values": [0.5]}),
        (TWO_TREES, {"aggregate_function": "AVERAGE", "base_values": [1.0]}),
        (CLASSES, {"base_values": [0.5]}),
        (CLASSES, {"post_transform": "NONE"}),
        (CLASSES, {"post_transform": "NONE", "class_weights": [0.25, 1.0]}),
        (CLASSES, {"class_ids": [1, 1]}),
        (TWO_SUMS, {}),
    ],
)
def test_trees_of_a_few_nodes(
    mode: str, tracks_true: int, attributes: Mapping[str, Values], changes: Mapping[str, Values]
) -> None:
    """At the border, beside it, and for NaN."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    n = len(attributes["nodes_treeids"]) // 3  # type: ignore[arg-type]
    content = trees(
        attributes,
        **changes,
        nodes_modes=[mode, "LEAF", "LEAF"] * n,
        nodes_missing_value_tracks_true=[tracks_true, 0, 0] * n,
    )
    inputs = np.array([[0.0, x] for x in (3.0, np.nextafter(np.float32(4), 3), 4.0, 5.0, np.nan)], np.float32)
    expected = make_golden.responses_of_file(content, inputs)
    assert np.abs(responses_of_trees(model_of(content), inputs) - expected).max() < 1e-5
