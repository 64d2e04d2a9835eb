"""ONNX files: the responses of onnxruntime, and a named error for every file that cannot be used."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.evaluation import networks
from hltnode.processing.selection.models.learned import LearnedModel
from hltnode.processing.selection.models.model_file import model_of, read_model
from hltnode.processing.selection.models.networks import onnx_file
from hltnode.processing.selection.models.networks.network import Network
from hltnode.processing.selection.models.networks.protobuf import Message
from tests.processing.selection.models.networks.onnx_writer import (
    LAYER,
    WEIGHTS,
    Value,
    file,
    message,
    node,
    tensor,
    value,
)
from tests.processing.selection.models.training_data import FEATURES

GOLDEN = Path(__file__).parent / "golden"
FILES = ("relu.onnx", "tanh.onnx", "layers.onnx")


def responses(model: LearnedModel, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
    assert isinstance(model.table, Network)
    found = networks.responses(model.table, list(inputs.T)).astype(np.float64)
    with np.errstate(over="ignore"):
        return found if model.slope is None else 1.0 / (1.0 + np.exp(-model.slope * found))


@pytest.mark.parametrize("name", FILES)
def test_the_response_is_that_of_onnxruntime(name: str) -> None:
    content = json.loads((GOLDEN / f"{Path(name).stem}.responses.json").read_text())
    model = read_model(GOLDEN / name)
    assert model.slope == (None if name == "tanh.onnx" else 1.0)
    found = responses(model, np.array(content["inputs"], np.float32))
    assert np.ptp(found) > 0.2
    assert np.abs(found - content["responses"]).max() < 1e-5


def test_the_metadata_may_name_the_features() -> None:
    assert read_model(GOLDEN / "layers.onnx").features == FEATURES
    assert read_model(GOLDEN / "relu.onnx").features == tuple(f"feature {i}" for i in range(4))


def row(content: bytes) -> float:
    """The response for x = (3, 5)."""
    return float(responses(model_of(content), np.array([[3.0, 5.0]], np.float32))[0])


ONE = tensor("c", 10.0)
CHAIN_OF_COPIES = [node("Identity", f"v{i + 1}", f"v{i}") for i in range(990)]


@pytest.mark.parametrize(
    ("nodes", "tensors", "expected"),
    [
        ([LAYER], [WEIGHTS], 13.0),
        ([node("MatMul", "x w", "a"), node("Add", "a c", "y")], [WEIGHTS, ONE], 23.0),
        ([node("MatMul", "x w", "a"), node("Add", "c a", "y")], [WEIGHTS, ONE], 23.0),
        ([node("MatMul", "x w", "a"), node("Sub", "a c", "y")], [WEIGHTS, ONE], 3.0),
        ([node("MatMul", "x w", "a"), node("Sub", "c a", "y")], [WEIGHTS, ONE], -3.0),
        ([node("MatMul", "x w", "a"), node("Mul", "c a", "y")], [WEIGHTS, ONE], 130.0),
        ([node("MatMul", "x w", "a"), node("Div", "a c", "y")], [WEIGHTS, ONE], np.float32(13) / np.float32(10)),
        ([node("Sub", "x c", "a"), node("MatMul", "a w", "y")], [WEIGHTS, tensor("c", [1.0, 2.0])], 8.0),
        ([node("Div", "x c", "a"), node("MatMul", "a w", "y")], [WEIGHTS, tensor("c", [[2.0, 4.0]])], 4.0),
        ([node("Div", "x c", "a"), node("MatMul", "a w", "y")], [WEIGHTS, tensor("c", 2.0, kind=11)], 6.5),
        ([node("Gemm", "x w c", "y", beta=2.0)], [WEIGHTS, ONE], 33.0),
        ([node("Gemm", "x w c", "y", alpha=0.5)], [WEIGHTS, ONE], 16.5),
        ([node("Gemm", "x w", "y", transB=1)], [tensor("w", [[1.0, 2.0]])], 13.0),
        ([node("MatMul", "x w", "a"), node("Sub", "c a", "b"), node("Relu", "b", "y")], [WEIGHTS, ONE], 0.0),
        (
            [node("MatMul", "x w", "a"), node("Sub", "c a", "b"), node("LeakyRelu", "b", "y", alpha=0.5)],
            [WEIGHTS, ONE],
            -1.5,
        ),
        ([node("MatMul", "x w", "a"), node("Sub", "c a", "b"), node("LeakyRelu", "b", "y")], [WEIGHTS, ONE], -0.03),
        ([node("MatMul", "x w", "a"), node("Flatten", "a", "y")], [WEIGHTS], 13.0),
        ([node("MatMul", "x w", "a"), node("Squeeze", "a", "b"), node("Identity", "b", "y")], [WEIGHTS], 13.0),
        ([node("Cast", "x", "a", to=1), node("MatMul", "a w", "y")], [WEIGHTS], 13.0),
        ([node("Identity", "w", "v"), node("MatMul", "x v", "y")], [WEIGHTS], 13.0),
        ([node("Cast", "w", "v", to=1), node("MatMul", "x v", "y")], [tensor("w", [[1.0], [2.0]], kind=11)], 13.0),
        ([node("Gemm", "x w -", "y")], [WEIGHTS], 13.0),
        ([node("Dropout", "x", "a -"), node("Dropout", "a r -", "b -"), node("MatMul", "b w", "y")], [WEIGHTS], 13.0),
        ([*CHAIN_OF_COPIES, node("MatMul", "x v0", "y")], [tensor("v990", [[1.0], [2.0]])], 13.0),
    ],
)
def test_an_operator_does_what_onnx_says(nodes: list[bytes], tensors: list[bytes], expected: float) -> None:
    assert row(file(nodes, tensors)) == pytest.approx(expected, rel=1e-6)


def test_a_probability_of_two_classes_is_that_of_the_second() -> None:
    nodes = [
        node("MatMul", "x w", "a"),
        node("Sigmoid", "a", "p"),
        node("Sub", "one p", "q"),
        node("Concat", "q p", "y"),
        node("ArgMax", "y", "label"),
    ]
    tensors = [tensor("w", [[0.1], [0.2]]), tensor("one", 1.0)]
    outputs = [value("label", 0, kind=7), value("y", 0, 2)]
    assert row(file(nodes, tensors, outputs=outputs)) == pytest.approx(1 / (1 + np.exp(-1.3)), abs=1e-6)
    one, along_rows = tensor("one", 2.0), node("Concat", "q p", "y", axis=0)
    between = [node("Concat", "q p", "c", axis=1), node("Relu", "c", "y")]
    for refused in (
        file(nodes, [tensors[0], one], outputs=outputs),
        file([*nodes[:3], along_rows], tensors),
        file([*nodes[:3], *between], tensors),
    ):
        with pytest.raises(ModelError, match="operator Concat: several inputs or classes"):
            row(refused)
    assert row(file([*nodes[:3], node("Concat", "q p", "y", axis=-1)], tensors)) == row(
        file(nodes, tensors, outputs=outputs)
    )


def test_numbers_may_be_packed_single_or_raw() -> None:
    packed = message((1, 2), (1, 1), (2, 1), (8, "w"), (4, np.array([1, 2], "<f4").tobytes()))
    single = message((1, 2), (1, 1), (2, 1), (8, "w"), (4, 1.0), (4, 2.0))
    double = message((1, 2), (1, 1), (2, 11), (8, "w"), (10, np.array([1, 2], "<f8").tobytes()))
    assert [row(file([LAYER], [weights])) for weights in (WEIGHTS, packed, single, double)] == [13.0] * 4


# --- what is refused --------------------------------------------------------------------------------------------------

BIG = tensor("w", np.zeros((2, 129)))
SIGNALLING_NAN = np.array([[0x7FF0000000000001], [0]], np.uint64).view(np.float64)
EXTERNAL = tensor("w", [[1.0], [2.0]], more=[(14, 1)])


def refusal(content: bytes) -> str:
    with pytest.raises(ModelError) as error:
        model_of(content)
    return str(error.value)


@pytest.mark.parametrize(
    ("nodes", "tensors", "message"),
    [
        ([node("Gelu", "x", "y")], [], "operator Gelu: a dense network of MatMul, Gemm, Add, Sub"),
        ([node("Relu", "x", "y", domain="mine")], [], r"operator 'mine\.Relu': a dense network"),
        ([node("Relu", "x", "y")], [], "no layer: a network with MatMul or Gemm is expected"),
        ([node("MatMul", "x v", "y")], [WEIGHTS], "MatMul: constant weights with two dimensions are expected"),
        ([node("MatMul", "x w", "y")], [tensor("w", [1.0, 2.0])], "MatMul: constant weights with two dimensions"),
        ([node("Add", "x x", "y")], [], "Add of two values: a constant and a value are expected"),
        ([node("Add", "x", "y")], [], "Add of 1 values, expected 2"),
        ([node("MatMul", "x w", "a"), node("Div", "c a", "y")], [WEIGHTS, ONE], "Div of a constant by a value"),
        ([node("Gemm", "x w", "y", transA=1)], [WEIGHTS], "Gemm with transA=1"),
        ([node("Gemm", "x w x", "y")], [WEIGHTS], "Gemm adds values that are no constants"),
        ([node("Gemm", "x w c", "y")], [WEIGHTS, tensor("c", [1.0, 2.0, 3.0])], "3 biases for 1 results"),
        ([node("MatMul", "x w", "a"), node("Add", "a c", "y")], [WEIGHTS, tensor("c", [[1.0], [2.0]])], "one row"),
        (
            [node("MatMul", "x w", "a"), node("Mul", "a c", "y")],
            [WEIGHTS, tensor("c", [1.0, 2.0])],
            "2 constants for 1",
        ),
        ([node("MatMul", "x w", "a"), node("MatMul", "a w", "y")], [WEIGHTS], "a matrix for 2 values follows 1 values"),
        ([LAYER], [tensor("w", [[1.0], [2.0], [3.0]])], "the input has 2 features, the first layer takes 3"),
        ([LAYER], [tensor("w", [[1.0, 1.0], [2.0, 2.0]])], "2 results: a model with one response is expected"),
        ([LAYER], [tensor("w", [[np.nan], [2.0]])], "a parameter of DENSE is not a finite number"),
        ([LAYER], [tensor("w", [[1e300], [2.0]], kind=11)], "a parameter of DENSE is not a finite number"),
        ([node("Div", "x c", "a"), node("MatMul", "a w", "y")], [WEIGHTS, tensor("c", [1.0, 0.0])], "divided by 0"),
        ([LAYER], [BIG], r"w has the shape \[2, 129\]: at most 128 values of a layer are allowed"),
        ([LAYER], [EXTERNAL], "the numbers of w are in another file: export with external_data=False"),
        ([LAYER], [message((1, 2), (1, 1), (2, 7), (8, "w"))], "w has elements of type 7: numbers in single"),
        ([LAYER], [message((1, 2), (1, 1), (2, 1), (8, "w"), (9, b"1234"))], r"w has 1 numbers for the shape \[2, 1\]"),
        ([LAYER], [message((1, 2), (1, 1), (2, 1), (8, "w"), (9, b"123"))], "damaged, or of another version"),
        ([LAYER], [message((1, -1), (1, 1), (2, 1), (8, "w"))], r"w has the shape \[-1, 1\]"),
        ([LAYER], [message(*[(1, 1)] * 99, (2, 1), (8, "w"))], r"w has the shape \[1, 1, 1, 1, 1, 1, \.\.\.\]: "),
        ([LAYER], [tensor("w", SIGNALLING_NAN, kind=11)], "a parameter of DENSE is not a finite number"),
        ([node("Gemm", "x w", "y", alpha=3e38)], [WEIGHTS], "a parameter of DENSE is not a finite number"),
        ([LAYER, LAYER], [WEIGHTS], "two nodes make y"),
        ([LAYER], [WEIGHTS, WEIGHTS], "2 values have the name w"),
        ([LAYER, node("Relu", "x", "w")], [WEIGHTS], "2 values have the name w"),
        ([LAYER, node("Relu", "x", "x")], [WEIGHTS], "2 values have the name x"),
        ([node("Dropout", "x", "a m"), node("MatMul", "m w", "y")], [WEIGHTS], "operator 'Dropout, result 2'"),
        ([node("Dropout", "x r t", "a"), node("MatMul", "a w", "y")], [WEIGHTS], "a Dropout in training mode"),
        ([node("Cast", "w", "v", to=7), node("MatMul", "x v", "y")], [WEIGHTS], "a Cast to type 7"),
        ([node("Identity", "u", "v"), node("Identity", "v", "u"), node("MatMul", "x v", "y")], [], "MatMul: constant"),
        ([node("Constant", "", "c", value_int=3), node("Add", "x c", "y")], [], "the constant c has no numbers"),
        ([node("Relu", "y", "y")], [], "no node makes y from an input of the graph"),
        ([], [], "no node makes y from an input of the graph"),
        ([node("Cast", "x", "a", to=7), node("MatMul", "a w", "y")], [WEIGHTS], "a Cast to type 7"),
        ([node("Flatten", "x", "a", axis=0), node("MatMul", "a w", "y")], [WEIGHTS], "Flatten between layers"),
        ([node("Reshape", "x", "a"), node("MatMul", "a w", "y")], [WEIGHTS], "operator Reshape between layers"),
        ([*(node("Relu", f"r{i + 1}", f"r{i}") for i in range(70))], [], "no node makes"),
        (
            [node("Relu", "r0", "y"), *(node("Relu", f"r{i + 1}", f"r{i}") for i in range(70))],
            [],
            "more than 64 steps",
        ),
        ([node("Identity", "x", f"r{i}") for i in range(1001)], [], "1001 nodes, at most 1000 are read"),
    ],
)
def test_a_graph_that_is_no_dense_network_is_refused(nodes: list[bytes], tensors: list[bytes], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        model_of(file(nodes, tensors))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"opset": 6}, "version 6 of the operators ai.onnx: versions 7 to 28 are read; export with opset_version=17"),
        ({"opset": 29}, "version 29 of the operators ai.onnx: versions 7 to 28 are read"),
        ({"more": [(8, message((1, "ai.onnx.ml"), (2, 6)))]}, "version 6 of the operators ai.onnx.ml: versions 1 to 5"),
        ({"more": [(25, message((1, "f")))]}, "functions of its own: export it with dynamo=False"),
        ({"more": [(14, message((1, "features"), (2, "[")))]}, "the entry 'features' of the metadata is not JSON"),
        ({"more": [(14, message((1, "features"), (2, '["a"]')))]}, "1 names of features for 2 features"),
        ({"inputs": [value("x", 0, 2), value("z", 0, 2)]}, "2 inputs: one input with all features is expected"),
        ({"inputs": [value("x", 0, 2, kind=7)]}, "the input has elements of type 7"),
        ({"inputs": [value("x", 0, 3)]}, "the input has 3 features, the first layer takes 2"),
        ({"inputs": [value("x", 0, 4, 2)]}, r"the input has the shape \[0, 4, 2\]: a row of features for each candid"),
        ({"outputs": [value("y", 0, 1), value("z", 0, 1)]}, r"2 outputs \(y, z\): a model with one response"),
        ({"outputs": [value("y", 0, kind=7)]}, r"0 outputs \(\): a model with one response is expected"),
    ],
)
def test_a_file_of_another_version_or_form_is_refused(
    changes: dict[str, list[tuple[int, Value]]], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        model_of(file([LAYER], [WEIGHTS], **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x08", "the content ends in a number"),
        (b"\x08\x08", "not an ONNX file, or a damaged one: it has no graph"),
        (b"\x08" + b"\xff" * 11, "a number of more than 64 bits"),
        (b"\x08\x08\x3a\x05ab", "the content ends in field 7"),
        (b"\x08\x08\x3b", "field 7 has the unknown type 3"),
        (message((1, 8), (7, 1), (8, message((2, 17)))), "field 7 has another type"),
    ],
)
def test_what_is_no_onnx_file_is_refused(content: bytes, message: str) -> None:
    assert message in refusal(content)


def test_a_text_that_is_none_is_refused() -> None:
    with pytest.raises(ModelError, match="field 1 is no text"):
        Message(message((1, b"\xff"))).text(1)


@pytest.mark.parametrize("shape", [(), (2,), (0, 2), (1, 2), (-1, -1), (0, 1, 2)])
def test_the_shape_of_the_input_may_be_open_or_that_of_a_row(shape: tuple[int, ...]) -> None:
    assert row(file([LAYER], [WEIGHTS], inputs=[value("x", *shape)])) == 13.0


def test_the_page_lists_the_operators_that_are_read() -> None:
    page = (Path(__file__).parents[5] / "docs" / "formats" / "network-models.md").read_text()
    rows = re.findall(r"^\| `.*$", page.partition("## ONNX")[2].partition("##")[0], re.MULTILINE)
    assert set(re.findall(r"`([A-Z]\w+)`", " ".join(rows))) == {
        *(*onnx_file._READ, *onnx_file._SHAPES, "Concat"),
        "StandardScaler",
    }


@settings(max_examples=300)
@given(st.sampled_from(FILES), st.integers(0, 1 << 20), st.binary(max_size=4))
def test_damaged_bytes_are_refused_or_give_a_network(name: str, place: int, other: bytes) -> None:
    content = (GOLDEN / name).read_bytes()
    place %= len(content)
    _assert_refused_or_read(content[:place] + other + content[place + len(other) + (not other) :])
    _assert_refused_or_read(content[:place])


@settings(max_examples=100)
@given(st.binary(max_size=60))
def test_any_bytes_are_refused_or_give_a_network(content: bytes) -> None:
    _assert_refused_or_read(b"\x08" + content)
    _assert_refused_or_read(file([LAYER], [WEIGHTS]) + content)


def _assert_refused_or_read(content: bytes) -> None:
    try:
        model = model_of(content)
    except ModelError:
        return
    assert len(responses(model, np.full((3, model.table.n_features), 0.5, np.float32))) == 3
