"""Tables of networks: the response of plain double precision, and refusal of tables that a kernel could not read."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.evaluation.networks import responses
from hltnode.processing.selection.models.ensemble import Ensemble, ObliviousTree
from hltnode.processing.selection.models.model_file import table_of_text
from hltnode.processing.selection.models.networks import network
from hltnode.processing.selection.models.networks.network import (
    MAGIC,
    MAX_FEATURES,
    MAX_STEPS,
    MAX_WIDTH,
    MAX_WORDS,
    Kind,
    Network,
    Step,
)

N_FEATURES = 3
NUMBERS = st.floats(width=32, min_value=-2, max_value=2)
PLAIN = (Kind.RELU, Kind.SIGMOID, Kind.TANH)


def numbers(draw: st.DrawFn, *shape: int) -> NDArray[np.float32]:
    n = math.prod(shape)
    return np.array(draw(st.lists(NUMBERS, min_size=n, max_size=n)), np.float32).reshape(shape)


def dense(draw: st.DrawFn, n: int, n_results: int) -> Step:
    return Step(Kind.DENSE, n_results, numbers(draw, n_results, n), numbers(draw, n_results))


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Steps of all kinds in any order, and a layer with one result at the end."""
    steps: list[Step] = []
    n = N_FEATURES
    for kind in draw(st.lists(st.sampled_from([kind for kind in Kind if kind is not Kind.RESIDUAL]), max_size=5)):
        if kind is Kind.DENSE:
            steps.append(dense(draw, n, draw(st.integers(1, 9))))
            n = steps[-1].n_results
        elif kind is Kind.GROUP_SORT:
            sizes = [size for size in range(2, n + 1) if n % size == 0]
            if sizes:
                steps.append(Step(kind, n, group=draw(st.sampled_from(sizes))))
        elif kind in PLAIN:
            steps.append(Step(kind, n))
        else:
            constants = numbers(draw, 1 if kind is Kind.LEAKY_RELU else n)
            steps.append(Step(kind, n, constants=np.where(constants == 0, np.float32(1), constants)))
    steps.append(dense(draw, n, 1))
    if draw(st.booleans()):
        steps.append(Step(Kind.RESIDUAL, 1, numbers(draw, N_FEATURES)))
    return Network.of_steps(steps, N_FEATURES)


def plain_response(made: Network, features: list[float]) -> float:
    """The oracle: double precision, and the functions of Python."""
    values = list(features)
    for step in made.steps:
        constants = [float(c) for c in step.constants]
        match step.kind:
            case Kind.DENSE:
                values = [
                    c + math.fsum(float(w) * v for w, v in zip(row, values, strict=True))
                    for row, c in zip(step.weights, constants, strict=True)
                ]
            case Kind.ADD:
                values = [v + c for v, c in zip(values, constants, strict=True)]
            case Kind.MUL:
                values = [v * c for v, c in zip(values, constants, strict=True)]
            case Kind.DIV:
                values = [v / c for v, c in zip(values, constants, strict=True)]
            case Kind.RELU:
                values = [max(v, 0.0) for v in values]
            case Kind.LEAKY_RELU:
                values = [v if v >= 0 else v * constants[0] for v in values]
            case Kind.SIGMOID:
                values = [1 / (1 + math.exp(-v)) if v > -700 else 0.0 for v in values]
            case Kind.TANH:
                values = [math.tanh(v) for v in values]
            case Kind.GROUP_SORT:
                parts = [values[i : i + step.group] for i in range(0, len(values), step.group)]
                values = [v for part in parts for v in sorted(part)]
            case Kind.RESIDUAL:
                rise = sum(float(w) * x for w, x in zip(step.weights, features, strict=True))
                values = [values[0] + rise]
    return values[0]


def largest_of(made: Network, features: list[float]) -> float:
    """How large the numbers of the evaluation may get, for the bound on its rounding. In double precision, because a
    quotient by a tiny constant overflows."""
    size = 1.0 + max(abs(x) for x in features)
    for step in made.steps:
        constants, weights = (np.abs(each).astype(np.float64) for each in (step.constants, step.weights))
        if step.kind is Kind.DENSE:
            size = float(constants.max()) + float(weights.sum(axis=1).max()) * size
        elif step.kind is Kind.ADD:
            size += float(constants.max())
        elif step.kind in (Kind.MUL, Kind.LEAKY_RELU):
            size *= max(1.0, float(constants.max()))
        elif step.kind is Kind.DIV:
            size *= max(1.0, 1.0 / float(constants.min()))
        elif step.kind is Kind.RESIDUAL:
            size += float(weights.sum()) * max(abs(x) for x in features)
    return size


def response(made: Network, rows: list[list[float]]) -> list[float]:
    found: list[float] = responses(made, list(np.array(rows, np.float32).T)).tolist()
    return found


@settings(max_examples=150)
@given(networks(), st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=1, max_size=3))
def test_a_response_is_that_of_plain_arithmetic(made: Network, rows: list[list[float]]) -> None:
    for found, row in zip(response(made, rows), rows, strict=True):
        size = largest_of(made, row)
        if size < 1e6:
            assert found == pytest.approx(plain_response(made, row), abs=1e-6 * size)
    again = table_of_text(made.text)
    assert isinstance(again, Network)
    assert (again, again.digest, response(again, rows)) == (made, made.digest, response(made, rows))


def layer(weights: list[list[float]], biases: list[float]) -> Step:
    return Step(Kind.DENSE, len(weights), np.array(weights, np.float32), np.array(biases, np.float32))


ONE = layer([[1.0, 1.0, 1.0]], [0.0])


@pytest.mark.parametrize("kind", [*PLAIN, Kind.LEAKY_RELU, Kind.GROUP_SORT])
@pytest.mark.parametrize("place", range(4))
def test_a_nan_among_the_features_makes_the_response_nan(kind: Kind, place: int) -> None:
    constants = np.array([0.5] if kind is Kind.LEAKY_RELU else [], np.float32)
    step = Step(kind, 4, constants=constants, group=4)
    made = Network.of_steps([step, layer([[1.0, 2.0, 3.0, 4.0]], [0.0])], 4)
    row = [0.5, -1.0, 2.0, 3.0]
    assert math.isfinite(response(made, [row])[0])
    row[place] = math.nan
    assert math.isnan(response(made, [row])[0])


@pytest.mark.parametrize("kind", [Kind.SIGMOID, Kind.TANH])
def test_activations_are_exact_to_1e_6_over_all_numbers(kind: Kind) -> None:
    x = np.concatenate([np.linspace(-100, 100, 20001), [np.inf, -np.inf, 0.0, 1e-30, 1e30]]).astype(np.float32)
    found = responses(Network.of_steps([Step(kind, 1)], 1), [x])
    with np.errstate(over="ignore"):
        wanted = np.tanh(x.astype(float)) if kind is Kind.TANH else 1 / (1 + np.exp(-x.astype(float)))
    assert np.abs(found - wanted).max() < 1e-6


def test_more_candidates_than_are_computed_at_once_are_all_computed() -> None:
    x = np.arange(10_000, dtype=np.float32)
    assert responses(Network.of_steps([layer([[2.0]], [1.0])], 1), [x]).tolist() == (2 * x + 1).tolist()


def test_the_widest_network_is_taken() -> None:
    wide = Step(Kind.DENSE, MAX_WIDTH, np.ones((MAX_WIDTH, MAX_FEATURES), np.float32), np.zeros(MAX_WIDTH, np.float32))
    last = layer([[1.0] * MAX_WIDTH], [0.0])
    made = Network.of_steps([wide, last], MAX_FEATURES)
    assert response(made, [[1.0] * MAX_FEATURES]) == [MAX_WIDTH * MAX_FEATURES]
    assert (made.width, made.n_features) == (MAX_WIDTH, MAX_FEATURES)


@pytest.mark.parametrize(
    ("steps", "n_features", "message"),
    [
        ([], 3, "0 steps, expected 1 to 64"),
        ([Step(Kind.RELU, 3)] * (MAX_STEPS + 1), 3, "65 steps, expected 1 to 64"),
        ([ONE], 0, "0 features, expected 1 to 128"),
        ([ONE], MAX_FEATURES + 1, "129 features, expected 1 to 128"),
        (
            [layer([[1.0] * 3] * (MAX_WIDTH + 1), [0.0] * (MAX_WIDTH + 1))],
            3,
            "129 values of a layer, expected 1 to 128",
        ),
        ([Step(Kind.RELU, 3)], 3, "3 results: a model with one response is expected"),
        ([layer([[1.0, math.nan, 1.0]], [0.0])], 3, "step 0: a parameter of DENSE is not a finite number"),
        ([layer([[1.0, 1.0, 1.0]], [math.inf])], 3, "step 0: a parameter of DENSE is not a finite number"),
        ([Step(Kind.DIV, 3, constants=np.array([1, 0, 1], np.float32)), ONE], 3, "step 0: a value is divided by 0"),
        ([Step(Kind.RELU, 2), ONE], 3, "step 0: RELU has 2 results for 3 values"),
        ([Step(Kind.GROUP_SORT, 3, group=2), ONE], 3, "step 0: groups of 2 in 3 values, expected a divisor"),
        ([Step(Kind.GROUP_SORT, 3, group=1), ONE], 3, "step 0: groups of 1 in 3 values, expected a divisor"),
        ([Step(Kind.GROUP_SORT, 34, group=34)], 34, "step 0: groups of 34 in 34 values, .* from 2 to 32"),
        ([Step(Kind.RESIDUAL, 3, np.ones(3, np.float32)), ONE], 3, "step 0: a sum of the features is added to 3"),
        ([Step(Kind.DENSE, 128, np.ones((128, 128), np.float32), np.ones(128, np.float32))] * 4, 128, "weights"),
    ],
)
def test_steps_that_are_no_network_are_refused(steps: list[Step], n_features: int, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Network.of_steps(steps, n_features)


@pytest.mark.parametrize(
    ("place", "word", "message"),
    [
        (0, 5, "begins with 0x00000005"),
        (1, 2, "step 0: RELU has 3 results for 2 values"),
        (1, 4, "step 0: RELU has 3 results for 4 values"),
        (2, 3, "the table ends before step 2"),
        (2, 1, "the steps end at"),
        (3, 2, "3 values between two steps, its head says 2"),
        (3, 4, "3 values between two steps, its head says 4"),
        (4, 11 | 3 << 8, "step 0: unknown kind 11"),
        (4, int(Kind.RELU), "step 0: 0 values of a layer, expected 1 to 128"),
        (4, int(Kind.RELU) | 129 << 8, "step 0: 129 values of a layer, expected 1 to 128"),
    ],
)
def test_a_damaged_table_is_refused(place: int, word: int, message: str) -> None:
    words = Network.of_steps([Step(Kind.RELU, 3), ONE], 3).words.copy()
    words[place] = word
    with pytest.raises(ModelError, match=message):
        Network(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([1, MAX_STEPS + 1, 1, *[Kind.RELU | 1 << 8] * (MAX_STEPS + 1)], "65 steps, expected 1 to 64"),
        ([1, 0, 1, 0], "0 steps, expected 1 to 64"),
        ([0, 1, 1, Kind.DENSE | 1 << 8, 0], "0 features, expected 1 to 128"),
        ([MAX_FEATURES + 1, 1, 129, Kind.DENSE | 1 << 8, *[0] * 130], "129 features, expected 1 to 128"),
        ([2, 1, 2, Kind.GROUP_SORT | 2 << 8], "step 0: groups of 0 in 2 values"),
        ([2, 1, 2, Kind.GROUP_SORT | 2 << 8, 4], "step 0: groups of 4 in 2 values"),
        ([2, 1, 2, Kind.DENSE | 1 << 8, 0, 0], "step 0: the table ends in its parameters"),
    ],
)
def test_a_table_that_no_file_gives_is_refused(words: list[int], message: str) -> None:
    """Of a TCK document: `of_steps` refuses the first ones before it makes words."""
    with pytest.raises(ModelError, match=message):
        Network(np.array([MAGIC, *words], np.uint32))


def test_a_table_that_is_cut_or_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Network.of_steps([Step(Kind.RELU, 3), ONE], 3).words
    for n in range(len(words)):
        with pytest.raises(ModelError):
            Network(words[:n])
    with pytest.raises(ModelError, match="the steps end at"):
        Network(np.append(words, np.uint32(0)))
    monkeypatch.setattr(network, "MAX_WORDS", 4)
    with pytest.raises(ModelError, match="a table of 10 words, expected 5 to 8"):
        Network(words)
    assert MAX_WORDS == 1 << 16


@settings(max_examples=200)
@given(networks(), st.integers(0, 1 << 16), st.integers(0, 2**32 - 1))
def test_a_word_of_any_value_is_refused_or_gives_a_network(made: Network, place: int, word: int) -> None:
    words = made.words.copy()
    words[place % len(words)] = word
    try:
        again = Network(words)
    except ModelError:
        return
    assert len(response(again, [[0.5] * again.n_features])) == 1


def test_a_text_is_the_table_of_its_kind() -> None:
    trees = Ensemble.of_trees([ObliviousTree((), [1.0])], 4, 0.0)
    assert isinstance(table_of_text(trees.text), Ensemble)
    assert table_of_text(trees.text) == trees
    for text in ("?", "AAA=", ""):
        with pytest.raises(ModelError):
            table_of_text(text)
