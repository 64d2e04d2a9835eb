"""Writes small ONNX files, and the responses that onnxruntime gives for them, into `golden`.

    python -m tests.processing.selection.models.networks.make_golden

Needs the packages of the group `networks`. `make test` compares with these files; test_onnxruntime.py makes other
networks each time.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.processing.selection.models.training_data import FEATURES, candidates, labels

GOLDEN = Path(__file__).parent / "golden"


def given() -> NDArray[np.float32]:
    """Candidates to train with; a network takes no missing values."""
    return np.nan_to_num(candidates(np.random.default_rng(7), 500))


def asked(n: int = 40, seed: int = 8) -> NDArray[np.float32]:
    """Candidates to ask for, some of them far outside of the training."""
    found = np.nan_to_num(candidates(np.random.default_rng(seed), n))
    found[:4] *= 100
    return found


def perceptron(
    activation: str, *, classifier: bool = True, layers: tuple[int, ...] = (7, 4), zipmap: bool = False
) -> Any:
    """A pipeline of scikit-learn behind a StandardScaler, as skl2onnx writes it."""
    import warnings

    from skl2onnx import to_onnx
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kind = MLPClassifier if classifier else MLPRegressor
    x = given()
    wanted = labels(x) if classifier else x[:, 0] - 3.0 * x[:, 1] * x[:, 2]
    model = make_pipeline(
        StandardScaler(), kind(hidden_layer_sizes=layers, activation=activation, max_iter=60, random_state=1)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, wanted)
        return to_onnx(model, x[:1], target_opset=17, options={"zipmap": zipmap} if classifier else None)


def layers_of_torch(seed: int = 5, sizes: tuple[int, ...] = (4, 6, 5, 1), *, name_features: bool = True) -> Any:
    """The graph that torch.onnx.export writes for a Sequential of Linear, LeakyReLU, Tanh and Sigmoid, behind a
    normalisation (x - mean) / deviation. Its weights are raw bytes, its constants nodes."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(seed)
    tensors = [
        numpy_helper.from_array(np.array(values, np.float32), name)
        for name, values in (("mean", [0.1, -0.2, 0.3, 9.0]), ("deviation", [[1.1, 0.9, 1.3, 5.5]]))
    ]
    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["centred"]),
        helper.make_node("Div", ["centred", "deviation"], ["at0"]),
        helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.array(2.0, np.float32))),
    ]
    activations = [("LeakyRelu", {"alpha": 0.2}), ("Tanh", {}), ("Sigmoid", {})]
    for i, (n, n_results) in enumerate(pairwise(sizes)):
        weights = rng.normal(0, 1 / np.sqrt(n), (n_results, n)).astype(np.float32)
        biases = rng.normal(0, 0.5, n_results).astype(np.float32)
        tensors += [numpy_helper.from_array(weights, f"{i}.weight"), numpy_helper.from_array(biases, f"{i}.bias")]
        nodes.append(
            helper.make_node("Gemm", [f"at{i}", f"{i}.weight", f"{i}.bias"], [f"sum{i}"], alpha=1.0, beta=1.0, transB=1)
        )
        kind, options = activations[i % 3]
        nodes.append(helper.make_node(kind, [f"sum{i}" if i else "doubled"], [f"at{i + 1}"], **options))
        if i == 0:
            nodes.insert(-1, helper.make_node("Mul", ["two", "sum0"], ["doubled"]))
    shape = ["batch", sizes[0]]
    graph = helper.make_graph(
        nodes,
        "main_graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(f"at{len(sizes) - 1}", TensorProto.FLOAT, ["batch", 1])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if name_features:
        helper.set_model_props(model, {"features": json.dumps(list(FEATURES))})
    return model


def trees(kind: str, *, zipmap: bool = False) -> Any:
    """Trees of scikit-learn, as skl2onnx writes them: `boosted`, `forest`, `boosted numbers` or `forest of numbers`."""
    from skl2onnx import to_onnx
    from sklearn import ensemble

    x = given()
    options: dict[str, Any] = {"n_estimators": 8, "max_depth": 3, "random_state": 1}
    makes = {
        "boosted": ensemble.GradientBoostingClassifier,
        "forest": ensemble.RandomForestClassifier,
        "boosted numbers": ensemble.GradientBoostingRegressor,
        "forest of numbers": ensemble.RandomForestRegressor,
    }
    model = makes[kind](**options)
    is_classifier = not kind.endswith("numbers")
    model.fit(x, labels(x) if is_classifier else x[:, 0] - 3.0 * x[:, 1] * x[:, 2])
    options = {"zipmap": zipmap} if is_classifier else {}
    return to_onnx(model, x[:1], target_opset={"": 17, "ai.onnx.ml": 3}, options=options or None)


def responses(model: Any, inputs: NDArray[np.float32]) -> list[float]:
    """What onnxruntime gives: the probability of the second class, or the number."""
    return responses_of_file(model.SerializeToString(), inputs)


def responses_of_file(content: bytes, inputs: NDArray[np.float32]) -> list[float]:
    """`responses` for the content of a file."""
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: inputs})[-1]
    if isinstance(found, list):
        return [float(row[1]) for row in found]
    return [float(row[-1]) for row in np.asarray(found).reshape(len(inputs), -1)]


MODELS: dict[str, Any] = {
    "relu": lambda: perceptron("relu"),
    "tanh": lambda: perceptron("tanh", classifier=False),
    "layers": layers_of_torch,
    "boosted_trees": lambda: trees("boosted"),
    "forest": lambda: trees("forest", zipmap=True),
    "numbers_of_trees": lambda: trees("boosted numbers"),
}


def main() -> None:
    """Train, save and predict."""
    GOLDEN.mkdir(exist_ok=True)
    inputs = asked()
    for name, make in MODELS.items():
        model = make()
        (GOLDEN / f"{name}.onnx").write_bytes(model.SerializeToString())
        content = {"inputs": inputs.tolist(), "responses": responses(model, inputs)}
        (GOLDEN / f"{name}.responses.json").write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
