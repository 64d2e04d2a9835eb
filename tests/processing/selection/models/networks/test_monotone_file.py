"""Monotone networks in JSON: bounds on their derivatives, and refusal of files that do not keep what they say."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.lhcb.lines.line_types.two_track_network import FILE
from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.evaluation.networks import responses
from hltnode.processing.selection.models.model_file import model_of
from hltnode.processing.selection.models.networks.monotone_file import TOLERANCE, bounds
from hltnode.processing.selection.models.networks.network import Network

LHCB: dict[str, Any] = json.loads(FILE.read_text())
SMALL: dict[str, Any] = {
    "features": ["pt", "ip"],
    "layers": [
        {"weights": [[0.5, -0.5], [0.25, 0.5], [0.5, 0.5], [-0.5, 0.125]], "biases": [0, 1, -1, 0.5]},
        {"weights": [[0.5, 0.25, -0.25, 0.5]], "biases": [0.25]},
    ],
    "slope": 0.75,
    "monotone_inputs": [1],
    "lipschitz": 0.75,
    "group_size": 4,
    "response": "sum",
    "comment": "for tests",
}
STEEPEST = (1.5 * 0.5, 1.5 * 0.5)
"""Of its layers, by the sums of the rows: 1.5 and the largest weight of each input."""


def network(content: dict[str, Any]) -> Network:
    table = model_of(json.dumps(content).encode()).table
    assert isinstance(table, Network)
    return table


def small(**values: object) -> dict[str, Any]:
    return {key: value for key, value in {**copy.deepcopy(SMALL), **values}.items() if value is not None}


def response(table: Network, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return responses(table, list(rows.T))


def plain(content: dict[str, Any], row: list[float]) -> float:
    """The oracle, in double precision."""
    values: list[float] = row
    size = content.get("group_size", 2)
    for i, layer in enumerate(content["layers"]):
        if i:
            values = [v for at in range(0, len(values), size) for v in sorted(values[at : at + size])]
        values = [float(np.dot(w, values)) + b for w, b in zip(layer["weights"], layer["biases"], strict=True)]
    slope: float = content["slope"]
    return values[0] + slope * float(sum(row[i] for i in content["monotone_inputs"]))


@pytest.mark.parametrize("content", [SMALL, LHCB], ids=["small", "lhcb"])
def test_a_response_is_that_of_the_layers_and_the_slope(content: dict[str, Any]) -> None:
    n = len(content["layers"][0]["weights"][0])
    rows = np.random.default_rng(2).normal(0, 3, (200, n)).astype(np.float32)
    expected = [plain(content, [float(x) for x in row]) for row in rows]
    assert np.ptp(expected) > 1
    assert np.abs(response(network(content), rows) - expected).max() < 1e-5


def test_the_response_says_whether_a_sigmoid_follows() -> None:
    assert model_of(json.dumps(SMALL).encode()).slope is None
    assert model_of(json.dumps(small(response="sigmoid")).encode()).slope == 1.0
    model = model_of(json.dumps(LHCB).encode())
    assert (model.slope, model.features[0]) == (1.0, "feature 0")


def test_the_network_of_lhcb_rises_with_its_monotone_inputs_and_no_bound_is_loose() -> None:
    weights = [np.array(layer["weights"]) for layer in LHCB["layers"]]
    assert bounds(weights) == pytest.approx([2.0] * 4, rel=1e-6)
    rows = np.random.default_rng(4).normal(0, 3, (2000, 4)).astype(np.float32)
    for i in LHCB["monotone_inputs"]:
        higher = rows.copy()
        higher[:, i] += np.float32(0.5)
        assert (response(network(LHCB), higher) >= response(network(LHCB), rows) - 1e-5).all()


@settings(max_examples=60)
@given(st.integers(0, 2**31), st.integers(0, 2), st.sampled_from([0.2, 1.0, 4.0]))
def test_no_derivative_exceeds_its_bound(seed: int, n_hidden: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    sizes = [3, *rng.choice([2, 4, 6], n_hidden), 1]
    weights = [rng.normal(0, scale, (b, a)) for a, b in pairwise(sizes)]
    limits = bounds(weights)

    def derivative(x: NDArray[np.float64]) -> NDArray[np.float64]:
        """By the chain rule: a sort of pairs swaps rows."""
        jacobian, values = np.eye(3), x
        for i, matrix in enumerate(weights):
            if i:
                order = np.concatenate([k + np.argsort(values[k : k + 2]) for k in range(0, len(values), 2)])
                jacobian, values = jacobian[order], values[order]
            jacobian, values = matrix @ jacobian, matrix @ values
        return np.asarray(jacobian[0])

    for _ in range(30):
        assert (np.abs(derivative(rng.normal(0, 3, 3))) <= limits * (1 + 1e-9)).all()
    if n_hidden == 0:
        assert limits == pytest.approx(np.abs(weights[0][0]))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # Each by another norm: largest value of the row sums, sums of columns, lengths.
        ([[1.0, 1.0], [1.0, -1.0]], [[0.5, 0.5]], 1.0),
        ([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0, 1.0, 1.0]], 1.0),
        ([[3.0, 3.0], [4.0, 4.0]], [[0.6, 0.8]], 5.0),
    ],
)
def test_the_smallest_of_the_norms_is_the_bound(
    first: list[list[float]], second: list[list[float]], expected: float
) -> None:
    assert bounds([np.array(first), np.array(second)]) == pytest.approx([expected] * 2)


def test_a_claim_holds_up_to_the_printed_digits() -> None:
    assert bounds([np.array(layer["weights"]) for layer in SMALL["layers"]]) == pytest.approx(
        [min(STEEPEST[0], 0.5 * (0.5 + 0.25 + 0.5 + 0.5)), min(STEEPEST[1], 0.5 * 1.625)], rel=0.1
    )
    least = float(bounds([np.array(layer["weights"]) for layer in SMALL["layers"]])[1])
    network(small(slope=least / (1 + TOLERANCE / 2), lipschitz=None))
    with pytest.raises(ModelError, match="monotone_inputs: the response may fall with ip: its layers change by up to"):
        network(small(slope=least / (1 + 2 * TOLERANCE), lipschitz=None))
    with pytest.raises(ModelError, match=r"lipschitz: the layers change by up to .* of .*, the file says"):
        network(small(lipschitz=least / 2))
    network(small(monotone_inputs=[], slope=0.0, lipschitz=None))


def test_a_negative_slope_is_no_rise() -> None:
    with pytest.raises(ModelError, match=r"the response may fall with ip: .*the slope is -0\.75"):
        network(small(slope=-0.75))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"slope": None}, "it has no 'slope'"),
        ({"layers": None}, "it has no 'layers'"),
        ({"layers": []}, "0 layers, expected 1 to 32"),
        ({"layers": SMALL["layers"][:1]}, "the last layer has 4 results, expected 1"),
        ({"layers": [SMALL["layers"][0], SMALL["layers"][0]]}, "layer 1 has weights for 2 values, layer 0 has 4"),
        ({"layers": [{"weights": [], "biases": []}]}, "layer 0: weights: a list of rows is expected"),
        ({"layers": [{"weights": [[]], "biases": [0]}]}, "0 values of layer 0, expected 1 to 128"),
        ({"layers": [{"weights": [[1, 2], [1]], "biases": [0, 0]}]}, "layer 0: weights: a list of 2 numbers"),
        ({"layers": [{"weights": [[1, 2]], "biases": []}]}, "layer 0: biases: a list of 1 numbers is expected"),
        ({"layers": [{"weights": [[1, float("nan")]], "biases": [0]}]}, "layer 0: weights: nan is not a finite number"),
        ({"layers": [{"weights": [[1, 1e39]], "biases": [0]}], "slope": 1e40, "lipschitz": 1e40}, "DENSE is not a fin"),
        ({"slope": 1e39}, "a parameter of RESIDUAL is not a finite number"),
        ({"slope": "x"}, "slope: a list of numbers is expected"),
        ({"monotone_inputs": [2]}, "monotone_inputs: distinct numbers from 0 to 1 are expected"),
        ({"monotone_inputs": [1, 1]}, "monotone_inputs: distinct numbers from 0 to 1 are expected"),
        ({"monotone_inputs": 1}, "monotone_inputs: a list of numbers is expected"),
        ({"group_size": 3}, "groups of 3 in 4 values, expected a divisor of them from 2 to 32"),
        ({"group_size": 1}, "groups of 1 in 4 values"),
        ({"response": "tanh"}, "response tanh: expected sigmoid or sum"),
        ({"response": ["sum"]}, "damaged, or of another version"),
        ({"features": ["pt"]}, "1 names of features for 2 features"),
        ({"activation": "relu"}, "unknown key activation, expected layers, slope"),
        ({"lipschitz": "much"}, "lipschitz: a list of numbers is expected"),
    ],
)
def test_a_file_that_is_no_monotone_network_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        network(small(**values))


ODD: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, True, -1, 2**70, 0.5, float("nan"), float("inf"), 1e300, "", "x", [], {}, [[1]], [None]]),
    st.integers(-3, 300),
    st.floats(),
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        found += paths(each, (*path, key))
    return found


@settings(max_examples=250)
@given(st.sampled_from(paths(SMALL)), st.one_of(st.none(), ODD.map(lambda odd: [odd])))
def test_a_damaged_value_is_refused_or_gives_a_network(path: tuple[Any, ...], value: list[Any] | None) -> None:
    damaged = copy.deepcopy(SMALL)
    at: Any = damaged
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value[0]
    try:
        table = network(damaged)
    except ModelError:
        return
    assert len(response(table, np.ones((3, table.n_features), np.float32))) == 3
