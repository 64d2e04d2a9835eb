"""The responses of networks that scikit-learn trains here, beside those of onnxruntime. `make model-libraries` installs
both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hltnode.processing.selection.models.model_file import model_of
from tests.processing.selection.models.networks import make_golden
from tests.processing.selection.models.networks.test_onnx_file import responses

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
