"""Dense networks in NumPy, bit-identical to network.cuh."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import F32
from hltnode.processing.selection.expressions.float_functions import exponential, maximum, minimum
from hltnode.processing.selection.models.networks.network import Kind, Network, Step

Floats = NDArray[np.float32]

_TOGETHER = 4096
"""Candidates at once: two layers of 128 values take 4 MiB."""
_1 = np.float32(1)


def responses(network: Network, inputs: Sequence[Floats]) -> Floats:
    """The response for each candidate, f32[n], of f32[n] for each feature."""
    features = np.stack(inputs)
    found = np.empty(features.shape[1], F32)
    with np.errstate(all="ignore"):
        for begin in range(0, len(found), _TOGETHER):
            part = features[:, begin : begin + _TOGETHER]
            values = part
            for step in network.steps:
                values = _after(step, values, part)
            found[begin : begin + _TOGETHER] = values[0]
    return found


def _after(step: Step, values: Floats, features: Floats) -> Floats:
    """f32[results, n] of f32[values, n]."""
    constants = step.constants[:, None]
    match step.kind:
        case Kind.DENSE:
            sums = np.repeat(constants, values.shape[1], axis=1)
            for weights, value in zip(step.weights.T, values, strict=True):
                sums += value * weights[:, None]
            return sums
        case Kind.ADD:
            return values + constants
        case Kind.MUL:
            return values * constants
        case Kind.DIV:
            return values / constants
        case Kind.RELU:
            return maximum(values, np.zeros_like(values))
        case Kind.LEAKY_RELU:
            leaky: Floats = np.where(values < 0, values * constants, values)
            return leaky
        case Kind.SIGMOID:
            return _1 / (_1 + exponential(-values))
        case Kind.TANH:
            decay = exponential(np.abs(values) * np.float32(-2))
            t = (_1 - decay) / (_1 + decay)
            tangent: Floats = np.where(values < 0, -t, t)
            return tangent
        case Kind.GROUP_SORT:
            return _sorted_groups(values, step.group)
        case Kind.RESIDUAL:
            rise: Floats = features[0] * step.weights[0]
            for feature, weight in zip(features[1:], step.weights[1:], strict=True):
                rise = rise + feature * weight
            result: Floats = values + rise
            return result


def _sorted_groups(values: Floats, group: int) -> Floats:
    """The rounds of neighbours of the kernel, so that a NaN ends in the same places."""
    found = values.copy()
    for begin in range(0, len(values), group):
        for turn in range(group):
            for i in range(begin + (turn & 1), begin + group - 1, 2):
                one, other = found[i].copy(), found[i + 1].copy()
                found[i], found[i + 1] = minimum(one, other), maximum(one, other)
    return found
