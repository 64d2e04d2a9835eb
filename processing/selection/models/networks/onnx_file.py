"""Models of ONNX files: dense networks as skl2onnx writes them for perceptrons of scikit-learn, and torch.onnx for a
chain of layers; decision trees (onnx_trees.py).

The steps are followed back from the response to the input, so nodes for the label of a class are not read. The
messages and their fields are those of onnx.proto3 (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3).
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import F32
from hltnode.processing.selection.errors import ModelError, shown
from hltnode.processing.selection.models import onnx_trees
from hltnode.processing.selection.models.learned import LearnedModel, names
from hltnode.processing.selection.models.networks.network import MAX_STEPS, MAX_WIDTH, Kind, Network, Step
from hltnode.processing.selection.models.networks.protobuf import Message

OPSETS = range(7, 29)
"""Versions of the operators: since 7 shapes are broadcast as today; 28 is the last one of onnx 1.23."""
ML_OPSETS = range(1, 6)
"""Of ai.onnx.ml, which has Scaler, ZipMap and decision trees."""
MAX_NODES = 1_000

_FLOAT, _INT64, _STRING, _DOUBLE = 1, 7, 8, 11
_FLOATS = (_FLOAT, _DOUBLE)
_LABELS = (_INT64, _STRING)
_UNCHANGED = ("Identity", "Cast", "Dropout", "ZipMap")
_SHAPES = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
_ACTIVATIONS = {"Relu": Kind.RELU, "Sigmoid": Kind.SIGMOID, "Tanh": Kind.TANH}
_PROBABILITIES = f"{onnx_trees.CLASSIFIER}, result 2"
_TREES = (_PROBABILITIES, onnx_trees.REGRESSOR)
_READ = (*("MatMul", "Gemm", "Add", "Sub", "Mul", "Div"), *_ACTIVATIONS, *("LeakyRelu", "Scaler"), *_UNCHANGED)


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """One operation. attributes: by name."""

    op: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Message]

    def integer(self, name: str, default: int) -> int:
        return self.attributes[name].integer(3) if name in self.attributes else default

    def number(self, name: str, default: float) -> float:
        return self.attributes[name].number(2, 0.0) if name in self.attributes else default


@dataclass(slots=True, eq=False)
class _Graph:
    """made_by: the node that makes a value. tensors: constants, decoded when they are used."""

    made_by: dict[str, _Node] = field(default_factory=dict)
    tensors: dict[str, Message] = field(default_factory=dict)
    inputs: dict[str, Message] = field(default_factory=dict)
    outputs: dict[str, Message] = field(default_factory=dict)

    def constant(self, name: str) -> NDArray[np.float32] | None:
        """The numbers of a constant; None for a value that depends on the input."""
        at = self.made_by.get(name)
        seen: set[str] = set()
        while at is not None and at.op in _UNCHANGED and at.inputs and name not in seen:
            seen.add(name)
            _check_unchanged(at)
            name = at.inputs[0]
            at = self.made_by.get(name)
        if name in self.tensors:
            return _numbers(self.tensors[name], name)
        return _constant(at, name) if at is not None and at.op == "Constant" else None


def from_bytes(content: bytes) -> LearnedModel:
    """The network or the trees of a file. Raises ModelError."""
    # A number that overflows in single precision is refused when the table is checked.
    with np.errstate(all="ignore"):
        model = Message(content)
        _check_versions(model)
        graph = _graph(model.message(7))
        response = _response(graph)
        trees = _node_of_trees(graph, response)
        return _network(model, graph, response) if trees is None else _trees(model, graph, trees)


def _network(model: Message, graph: _Graph, response: str) -> LearnedModel:
    steps, source = _steps(graph, response)
    n_features = _n_features(graph, source, steps)
    steps = [_widened(step, n) for step, n in zip(steps, _widths(steps, n_features), strict=True)]
    is_logistic = len(steps) > 1 and steps[-1].kind is Kind.SIGMOID
    network = Network.of_steps(steps[:-1] if is_logistic else steps, n_features)
    return LearnedModel(network, names(_feature_names(model), n_features), slope=1.0 if is_logistic else None)


def _unchanged(graph: _Graph, name: str, *others: str) -> str:
    """The value that a value is a copy of, nodes of `others` included."""
    for _ in range(MAX_NODES):
        at = graph.made_by.get(name)
        if at is None or at.op not in (*_UNCHANGED, *others) or not at.inputs:
            break
        _check_unchanged(at)
        name = at.inputs[0]
    return name


def _node_of_trees(graph: _Graph, response: str) -> _Node | None:
    """The trees whose result is the response; the one number of a regression may have another shape."""
    at = graph.made_by.get(_unchanged(graph, response))
    if at is None or at.op != _PROBABILITIES:
        at = graph.made_by.get(_unchanged(graph, response, *_SHAPES))
        if at is not None and at.op == _PROBABILITIES:
            _refuse("another shape of the probabilities of two classes: both are expected as the response")
    return at if at is not None and at.op in _TREES else None


def _trees(model: Message, graph: _Graph, at: _Node) -> LearnedModel:
    source = _unchanged(graph, at.inputs[0] if at.inputs else "")
    if source not in graph.inputs:
        before = graph.made_by.get(source)
        _refuse(f"trees of the result of {shown(before.op if before else source)}: an input of the graph is expected")
    n_features = _shape_of_input(graph, source)
    slope = None
    if at.op == _PROBABILITIES:
        table, slope = onnx_trees.classifier(at.attributes, n_features)
    else:
        table = onnx_trees.regressor(at.attributes, n_features)
    return LearnedModel(table, names(_feature_names(model), table.n_features), slope=slope)


def _refuse(message: str) -> NoReturn:
    raise ModelError(message)


def _check_versions(model: Message) -> None:
    if 7 not in model or 8 not in model:
        _refuse("not an ONNX file, or a damaged one: it has no graph or no versions of operators")
    if model.messages(25):
        _refuse("the model has functions of its own: export it with dynamo=False, or opset_version=17")
    for each in model.messages(8):
        domain, version = each.text(1), each.integer(2)
        known = {"": OPSETS, "ai.onnx": OPSETS, "ai.onnx.ml": ML_OPSETS}.get(domain)
        if known is not None and version not in known:
            _refuse(
                f"version {version} of the operators {domain or 'ai.onnx'}: versions {known[0]} to {known[-1]} are "
                f"read; export with opset_version={min(17, known[-1])}"
            )


def _graph(content: Message) -> _Graph:
    graph = _Graph()
    nodes = content.messages(1)
    if len(nodes) > MAX_NODES:
        _refuse(f"{len(nodes)} nodes, at most {MAX_NODES} are read")
    for each in nodes:
        attributes = {attribute.text(1): attribute for attribute in each.messages(5)}
        domain = each.text(7)
        op = each.text(4) if domain in ("", "ai.onnx", "ai.onnx.ml") else f"{domain}.{each.text(4)}"
        for place, output in enumerate(each.texts(2)):
            if output in graph.made_by:
                _refuse(f"two nodes make {shown(output)}")
            if output:  # without a name, a result is left out
                which = f", result {place + 1}" if place else ""
                graph.made_by[output] = _Node(op + which, tuple(each.texts(1)), attributes)
    tensors = content.messages(5)
    graph.tensors = {tensor.text(8): tensor for tensor in tensors}
    inputs = [value for value in content.messages(11) if value.text(1) not in graph.tensors]
    graph.inputs = {value.text(1): value for value in inputs}
    graph.outputs = {value.text(1): value for value in content.messages(12)}
    named = Counter([*(tensor.text(8) for tensor in tensors), *(value.text(1) for value in inputs), *graph.made_by])
    name, n = named.most_common(1)[0] if named else ("", 0)
    if n > 1:
        _refuse(f"{n} values have the name {shown(name)}")
    return graph


def _tensor_type(value: Message) -> Message:
    """The type of the elements and the shape of a graph's input or output."""
    return value.message(2).message(1)


def _response(graph: _Graph) -> str:
    """The output that is no label of a class."""
    found = [name for name, value in graph.outputs.items() if _tensor_type(value).integer(1) not in _LABELS]
    if len(found) != 1:
        _refuse(f"{len(found)} outputs ({', '.join(map(shown, found))}): a model with one response is expected")
    return found[0]


def _steps(graph: _Graph, name: str) -> tuple[list[Step], str]:
    """The steps from the input to a value, and the name of the input. Widths of constants may still be 1."""
    steps: list[Step] = []
    seen: set[str] = set()
    while name not in graph.inputs:
        at = graph.made_by.get(name)
        if at is None or name in seen or not at.inputs:
            _refuse(f"no node makes {shown(name)} from an input of the graph")
        seen.add(name)
        if at.op == "Concat":
            name = _of_two_classes(graph, at, steps)
            continue
        if at.op in _SHAPES:
            _check_shape(at, steps)
            name = at.inputs[0]
            continue
        if at.op not in _READ:
            if at.op in _TREES:
                _refuse(f"operator {shown(at.op)} before another operator: trees are read as the last operator only")
            _refuse(f"operator {shown(at.op)}: a dense network of {', '.join(_READ)} is expected, or trees")
        _check_unchanged(at)
        found, name = _step(graph, at)
        steps += reversed(found)
        if len(steps) > MAX_STEPS:
            _refuse(f"more than {MAX_STEPS} steps")
    steps.reverse()
    return _joined(steps), name


def _check_unchanged(at: _Node) -> None:
    """Refuses a Cast or Dropout that changes numbers."""
    if at.op == "Cast" and at.integer("to", 0) not in _FLOATS:
        _refuse(f"a Cast to type {at.integer('to', 0)}: numbers in single precision are expected")
    if at.op == "Dropout" and any(at.inputs[2:]):
        _refuse("a Dropout in training mode: export the model for evaluation, in PyTorch after model.eval()")


def _check_shape(at: _Node, later: list[Step]) -> None:
    """Only a change of the shape that keeps the one response, or rows of values, is none."""
    if at.op == "Flatten" and at.integer("axis", 1) == 1:
        return
    if later:
        _refuse(f"operator {at.op} between layers: it is read behind the last one only")


def _of_two_classes(graph: _Graph, at: _Node, later: list[Step]) -> str:
    """The name of p, for the responses 1 - p and p of two classes."""
    if len(at.inputs) == 2 and at.integer("axis", 1) in (1, -1) and not later:
        other = graph.made_by.get(at.inputs[0])
        if other is not None and other.op == "Sub" and len(other.inputs) == 2 and other.inputs[1] == at.inputs[1]:
            one = graph.constant(other.inputs[0])
            if one is not None and one.size == 1 and float(one.ravel()[0]) == 1.0:
                return at.inputs[1]
    _refuse("operator Concat: several inputs or classes; one input and one response, or two classes, are expected")


def _step(graph: _Graph, at: _Node) -> tuple[list[Step], str]:
    """The steps of a node, and the name of the value that they take."""
    value = at.inputs[0]
    if at.op in _UNCHANGED:
        return [], value
    if at.op in _ACTIVATIONS:
        return [Step(_ACTIVATIONS[at.op], 0)], value
    if at.op == "LeakyRelu":
        return [Step(Kind.LEAKY_RELU, 0, constants=np.array([at.number("alpha", 0.01)], F32))], value
    if at.op == "Scaler":
        offset, scale = (at.attributes[name].floats(7) for name in ("offset", "scale"))
        return [Step(Kind.ADD, len(offset), constants=-offset), Step(Kind.MUL, len(scale), constants=scale)], value
    return (_gemm if at.op == "Gemm" else _matrix if at.op == "MatMul" else _elementwise)(graph, at)


def _gemm(graph: _Graph, at: _Node) -> tuple[list[Step], str]:
    if at.integer("transA", 0):
        _refuse("Gemm with transA=1: the values of a candidate are expected in a row")
    weights = _weights(graph, at)
    weights = at.number("alpha", 1.0) * (weights.T if at.integer("transB", 0) == 0 else weights)
    biases = np.zeros(len(weights), F32)
    if len(at.inputs) > 2 and at.inputs[2]:
        given = graph.constant(at.inputs[2])
        if given is None:
            _refuse("Gemm adds values that are no constants")
        biases = at.number("beta", 1.0) * _row(given, "the biases of Gemm")
    return [_dense(weights, biases)], at.inputs[0]


def _matrix(graph: _Graph, at: _Node) -> tuple[list[Step], str]:
    weights = _weights(graph, at).T
    return [_dense(weights, np.zeros(len(weights), F32))], at.inputs[0]


def _weights(graph: _Graph, at: _Node) -> NDArray[np.float32]:
    weights = graph.constant(at.inputs[1]) if len(at.inputs) > 1 else None
    if weights is None or weights.ndim != 2:
        _refuse(f"{at.op}: constant weights with two dimensions are expected as its second operand")
    return weights


def _dense(weights: NDArray[np.float32], biases: NDArray[np.float32]) -> Step:
    if len(biases) not in (1, len(weights)):
        _refuse(f"{len(biases)} biases for {len(weights)} results")
    return Step(Kind.DENSE, len(weights), weights.astype(F32), np.resize(biases, len(weights)).astype(F32))


def _elementwise(graph: _Graph, at: _Node) -> tuple[list[Step], str]:
    """A sum, difference, product or quotient with a constant."""
    if len(at.inputs) != 2:
        _refuse(f"{at.op} of {len(at.inputs)} values, expected 2")
    left, right = (graph.constant(name) for name in at.inputs)
    if (left is None) == (right is None):
        _refuse(f"{at.op} of two values: a constant and a value are expected; connections past a layer are not read")
    if right is None:
        assert left is not None
        of, constants = at.inputs[1], _row(left, f"the constants of {at.op}")
        minus = np.full(1, -1, F32)
        steps = {
            "Add": [(Kind.ADD, constants)],
            "Mul": [(Kind.MUL, constants)],
            "Sub": [(Kind.MUL, minus), (Kind.ADD, constants)],
        }.get(at.op)
        if steps is None:
            _refuse("Div of a constant by a value: a value is expected over a constant")
    else:
        of, constants = at.inputs[0], _row(right, f"the constants of {at.op}")
        kinds = {"Add": Kind.ADD, "Sub": Kind.ADD, "Mul": Kind.MUL, "Div": Kind.DIV}
        steps = [(kinds[at.op], -constants if at.op == "Sub" else constants)]
    return [Step(kind, len(constants), constants=constants) for kind, constants in steps], of


def _row(values: NDArray[np.float32], what: str) -> NDArray[np.float32]:
    """One row of numbers: of shape [], [n] or [1, n]."""
    if values.size == 0 or values.size != (values.shape[-1] if values.ndim else 1):
        _refuse(f"{what} have the shape {list(values.shape)}, expected one row")
    return values.ravel()


def _joined(steps: list[Step]) -> list[Step]:
    """Constants that are added to a product of a matrix become its biases."""
    found: list[Step] = []
    for step in steps:
        before = found[-1] if found else None
        if (
            step.kind is Kind.ADD
            and before is not None
            and before.kind is Kind.DENSE
            and not before.constants.any()
            and step.n_results in (1, before.n_results)
        ):
            found[-1] = _dense(before.weights, step.constants)
        else:
            found.append(step)
    return found


def _widths(steps: list[Step], n_features: int) -> list[int]:
    """The number of values before each step. Raises ModelError for one that takes another number."""
    found, n = [], n_features
    for i, step in enumerate(steps):
        found.append(n)
        if step.kind is Kind.DENSE:
            if step.weights.shape[1] != n:
                _refuse(f"step {i}: a matrix for {step.weights.shape[1]} values follows {n} values")
            n = step.n_results
        elif step.kind in (Kind.ADD, Kind.MUL, Kind.DIV) and step.n_results not in (1, n):
            _refuse(f"step {i}: {step.n_results} constants for {n} values")
    return found


def _widened(step: Step, n: int) -> Step:
    """The step with one constant for each of its n values."""
    if step.kind is Kind.DENSE:
        return step
    if step.kind in (Kind.ADD, Kind.MUL, Kind.DIV):
        return Step(step.kind, n, constants=np.resize(step.constants, n))
    return Step(step.kind, n, constants=step.constants)


def _shape_of_input(graph: _Graph, source: str) -> int | None:
    """The number of features that the input says; None if the file leaves it open."""
    if len(graph.inputs) != 1:
        _refuse(f"{len(graph.inputs)} inputs: one input with all features is expected")
    kind = _tensor_type(graph.inputs[source])
    if kind.integer(1) not in _FLOATS:
        _refuse(f"the input has elements of type {kind.integer(1)}: numbers in single precision are expected")
    dimensions = [dimension.integer(1) for dimension in kind.message(2).messages(1)]
    if any(n != 1 for n in dimensions[1:-1]):
        _refuse(f"the input has the shape {shown(dimensions)}: a row of features for each candidate is expected")
    # 0 or -1 for a number that the file leaves open.
    return dimensions[-1] if dimensions and dimensions[-1] > 0 else None


def _n_features(graph: _Graph, source: str, steps: list[Step]) -> int:
    """The numbers that the first layer takes."""
    given = _shape_of_input(graph, source)
    taken = next((step.weights.shape[1] for step in steps if step.kind is Kind.DENSE), 0)
    if taken == 0:
        _refuse("no layer: a network with MatMul or Gemm is expected")
    if given is not None and given != taken:
        _refuse(f"the input has {given} features, the first layer takes {taken}")
    return taken


def _feature_names(model: Message) -> object:
    """The list of names that the metadata of the file have as JSON under the key `features`; None without."""
    for entry in model.messages(14):
        if entry.text(1) == "features":
            try:
                return json.loads(entry.text(2))
            except (ValueError, RecursionError) as error:
                _refuse(f"the entry 'features' of the metadata is not JSON: {error}")
    return None


# --- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(tensor: Message, name: str) -> NDArray[np.float32]:
    """A tensor of single or double precision. Raises ModelError."""
    kind, shape = tensor.integer(2), tensor.integers(1)
    if tensor.integer(14) or tensor.messages(13):
        _refuse(f"the numbers of {shown(name)} are in another file: export with external_data=False")
    if kind not in _FLOATS:
        _refuse(f"{shown(name)} has elements of type {kind}: numbers in single or double precision are expected")
    if len(shape) > 4 or not all(0 <= n <= MAX_WIDTH for n in shape):
        _refuse(f"{shown(name)} has the shape {shown(shape)}: at most {MAX_WIDTH} values of a layer are allowed")
    read: Mapping[int, Callable[[int], NDArray[np.floating]]] = {_FLOAT: tensor.floats, _DOUBLE: tensor.doubles}
    raw = np.frombuffer(tensor.content(9), "<f4" if kind == _FLOAT else "<f8") if 9 in tensor else None
    values = read[kind](4 if kind == _FLOAT else 10) if raw is None else raw
    if values.size != np.prod(shape, dtype=np.int64):
        _refuse(f"{shown(name)} has {values.size} numbers for the shape {shape}")
    return values.astype(F32).reshape(shape)


def _constant(at: _Node, name: str) -> NDArray[np.float32]:
    if "value" in at.attributes:
        return _numbers(at.attributes["value"].message(5), name)
    if "value_float" in at.attributes:
        return np.array(at.number("value_float", 0.0), F32)
    if "value_floats" in at.attributes:
        return at.attributes["value_floats"].floats(7).astype(F32)
    _refuse(f"the constant {shown(name)} has no numbers in single or double precision")
