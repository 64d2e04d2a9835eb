"""Monotone Lipschitz networks in JSON (docs/formats/network-models.md): linear layers, GroupSort between them, and a
slope times the sum of the monotone inputs (O. Kitouni, N. Nolte, M. Williams, "Robust and provably monotonic networks",
Mach. Learn.: Sci. Technol. 4 (2023) 035020, arXiv:2112.00038).

The response rises with an input if the slope is at least the Lipschitz constant of the layers for that input. Norms of
the weights bound this constant, because GroupSort only reorders its values.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import F32
from hltnode.processing.selection.errors import ModelError, shown
from hltnode.processing.selection.models.learned import LearnedModel, finite, integers, names
from hltnode.processing.selection.models.networks.network import MAX_STEPS, MAX_WIDTH, Kind, Network, Step
from hltnode.processing.selection.models.table import expect

TOLERANCE = 1e-4
"""Relative, for bounds: weights that are printed with seven digits, in up to a few layers, miss them by this much."""
_KEYS = ("layers", "slope", "monotone_inputs", "features", "group_size", "lipschitz", "response", "comment")
_RESPONSES = {"sigmoid": 1.0, "sum": None}

Weights = NDArray[np.float64]


def from_json(content: Mapping[str, Any]) -> LearnedModel:
    """The network of the JSON object. Raises ModelError, and the errors of a damaged object (model_file.py)."""
    unknown = [key for key in content if key not in _KEYS]
    if unknown:
        raise ModelError(f"unknown key {shown(unknown[0])}, expected {', '.join(_KEYS)}")
    response = content.get("response", "sigmoid")
    if response not in _RESPONSES:
        raise ModelError(f"response {shown(response)}: expected {' or '.join(_RESPONSES)}")
    (group,) = integers([content.get("group_size", 2)], "group_size")
    layers = content["layers"]
    expect(len(layers), 1, MAX_STEPS // 2, "layers")
    weights = [_weights(layer["weights"], i) for i, layer in enumerate(layers)]
    biases = [finite(layer["biases"], f"layer {i}: biases", len(weights[i])) for i, layer in enumerate(layers)]
    n_features = weights[0].shape[1]
    for i, (before, after) in enumerate(pairwise(weights)):
        if after.shape[1] != len(before):
            raise ModelError(f"layer {i + 1} has weights for {after.shape[1]} values, layer {i} has {len(before)}")
    if len(weights[-1]) != 1:
        raise ModelError(f"the last layer has {len(weights[-1])} results, expected 1")
    (slope,) = finite([content["slope"]], "slope")
    features = names(content.get("features"), n_features)
    monotone = _monotone(content["monotone_inputs"], n_features)
    _check_claims(content, bounds(weights), float(slope), monotone, features)
    steps: list[Step] = []
    for matrix, bias in zip(weights, biases, strict=True):
        if steps:
            steps.append(Step(Kind.GROUP_SORT, len(steps[-1].constants), group=int(group)))
        steps.append(Step(Kind.DENSE, len(matrix), _single(matrix), _single(bias)))
    if monotone:
        rise = np.zeros(n_features)
        rise[monotone] = slope
        steps.append(Step(Kind.RESIDUAL, 1, _single(rise)))
    return LearnedModel(Network.of_steps(steps, n_features), features, slope=_RESPONSES[response])


def bounds(weights: Sequence[Weights]) -> NDArray[np.float64]:
    """For each input, a number that the derivative of the layers never exceeds, f64[inputs].

    The sum of absolute values, the length and the largest absolute value of the derivatives are carried through the
    layers, each by the smallest bound that norms of the weights give.
    """
    with np.errstate(all="ignore"):
        return _bounds(weights)


def _bounds(weights: Sequence[Weights]) -> NDArray[np.float64]:
    first = weights[0]
    total, length, largest = np.abs(first).sum(axis=0), np.sqrt((first**2).sum(axis=0)), np.abs(first).max(axis=0)
    for matrix in weights[1:]:
        size = np.abs(matrix)
        by_total = [size.sum(axis=0).max() * total, size.sum() * largest]
        by_length = [np.linalg.norm(matrix, 2) * length]
        by_largest = [size.sum(axis=1).max() * largest, size.max() * total]
        total, length, largest = (
            np.minimum.reduce([*by_total, np.sqrt(len(matrix)) * by_length[0]]),
            np.minimum.reduce([*by_length, by_total[0], np.sqrt(len(matrix)) * by_largest[0]]),
            np.minimum.reduce([*by_largest, np.sqrt((matrix**2).sum(axis=1)).max() * length]),
        )
    found: NDArray[np.float64] = np.minimum.reduce([total, length, largest])
    return found


def _weights(rows: object, layer: int) -> Weights:
    """f64[results, values]. Raises ModelError."""
    if not isinstance(rows, list) or not rows:
        raise ModelError(f"layer {layer}: weights: a list of rows is expected")
    expect(len(rows), 1, MAX_WIDTH, f"results of layer {layer}")
    found = [finite(row, f"layer {layer}: weights", len(rows[0])) for row in rows]
    expect(len(found[0]), 1, MAX_WIDTH, f"values of layer {layer}")
    return np.stack(found)


def _single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return values.astype(F32)


def _monotone(values: object, n_features: int) -> list[int]:
    found = [int(value) for value in integers(values, "monotone_inputs")]
    if len(set(found)) != len(found) or not all(0 <= value < n_features for value in found):
        raise ModelError(f"monotone_inputs: distinct numbers from 0 to {n_features - 1} are expected")
    return found


def _check_claims(
    content: Mapping[str, Any],
    steepest: NDArray[np.float64],
    slope: float,
    monotone: Sequence[int],
    features: Sequence[str],
) -> None:
    """Raises ModelError if the weights do not keep what the file says of them."""
    for i in monotone:
        if not steepest[i] <= slope * (1 + TOLERANCE):
            raise ModelError(
                f"monotone_inputs: the response may fall with {shown(features[i])}: its layers change by up to "
                f"{steepest[i]:.4g} for each unit, the slope is {slope:.4g}; constrain the norms of the weights in the "
                "training, or leave the input out of monotone_inputs and train without its slope"
            )
    if "lipschitz" in content:
        (claimed,) = finite([content["lipschitz"]], "lipschitz")
        worst = int(np.argmax(steepest))
        if not steepest[worst] <= claimed * (1 + TOLERANCE):
            raise ModelError(
                f"lipschitz: the layers change by up to {steepest[worst]:.4g} for each unit of "
                f"{shown(features[worst])}, the file says {claimed:.4g}"
            )
