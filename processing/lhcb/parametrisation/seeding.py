"""Fits for the search in the SciFi alone: selection of hits that can be a track from the collisions."""

import numpy as np

from hltnode.processing.lhcb.parametrisation.flights import MEV
from hltnode.processing.lhcb.parametrisation.forms import (
    SEED_CURVATURE,
    SEED_MOMENTUM,
    SEED_REACH,
    Z_REFERENCE,
    FloatArray,
)
from hltnode.processing.lhcb.parametrisation.functions import INTERCEPT_UNIT
from hltnode.processing.lhcb.parametrisation.polynomials import Fit
from hltnode.processing.lhcb.parametrisation.tracks import Tracks

Pair = tuple[int, int]

PAIRS: dict[str, Pair] = {
    "first_station": (0, 3),
    "last_station": (8, 11),
    "first_layers": (0, 8),
    "last_layers": (3, 11),
}
"""x layers whose hits begin a search: both of one station, or the first or last ones of two."""

# Tracks are spread evenly in slopes; those of collisions are denser at small ones, about as 1 / (angle^2 + this).
_SMALL_ANGLE_SQUARED = 0.0025
# Fraction of the tracks, the straightest ones, that count as straight.
_STRAIGHT = 0.1


def fit_seeds(tracks: Tracks) -> tuple[dict[str, Fit], dict[str, FloatArray]]:
    """The functions of seeds, and the variance of tracks about `reach` from their origins, f64[2]: a constant term
    (mm^2) and the factor of the square of s (c/GeV)."""
    density = 1.0 / np.sqrt(tracks.velo.tx**2 + tracks.velo.ty**2 + _SMALL_ANGLE_SQUARED)
    fits = {"momentum": _fit_momentum(tracks, density)}
    spreads = {}
    for name, pair in PAIRS.items():
        fits[f"curvature_{name}"] = _fit_curvature(tracks, pair, density)
        fits[f"reach_{name}"] = found = _fit_reach(tracks, pair, density)
        spreads[f"reach_{name}"] = _spread(found.residuals * tracks.s, tracks.s, density)
    return fits, spreads


def chord(tracks: Tracks, pair: Pair) -> tuple[FloatArray, FloatArray]:
    """Slope, and intercept (m) at z = 0, of the chords through a pair of layers."""
    first, last = pair
    z, x = tracks.layer_z, tracks.x
    slope = (x[last] - x[first]) / (z[last] - z[first])
    return slope, (x[first] - slope * z[first]) / INTERCEPT_UNIT


def reach(tracks: Tracks, pair: Pair) -> FloatArray:
    """x (mm) in the second layer, minus that of a straight line from the origin through the crossing of the first."""
    first, last = pair
    reached: FloatArray = tracks.x[last] - tracks.x[first] * (tracks.layer_z[last] / tracks.layer_z[first])
    return reached


def _spread(residuals: FloatArray, bend: FloatArray, density: FloatArray) -> FloatArray:
    """The variance a + b bend^2 of the residuals: a from straight tracks, b from bent ones."""
    straight = np.abs(bend) < np.quantile(np.abs(bend), _STRAIGHT)
    squared, weight = np.square(residuals), np.square(density)
    constant = np.average(squared[straight], weights=weight[straight])
    more = np.average(np.maximum(squared[~straight] - constant, 0.0), weights=weight[~straight])
    return np.array([constant, more / np.average(np.square(bend[~straight]), weights=weight[~straight])])


def _fit_momentum(tracks: Tracks, density: FloatArray) -> Fit:
    behind = tracks.behind
    intercept = (behind.x - behind.tx * Z_REFERENCE) / INTERCEPT_UNIT
    # The fit minimises the error relative to the momentum; for straight tracks the origin dominates this error.
    weight = density * tracks.weight * intercept / tracks.s * np.minimum(1.0, np.abs(tracks.s) / 0.1)
    variables = (intercept, behind.tx, behind.y / Z_REFERENCE)
    return Fit.of(SEED_MOMENTUM, variables, tracks.s / intercept / MEV, weight)


def _fit_curvature(tracks: Tracks, pair: Pair, density: FloatArray) -> Fit:
    slope, intercept = chord(tracks, pair)
    variables = (intercept, slope, tracks.y[pair[0]] / tracks.layer_z[pair[0]])
    weight = density * tracks.weight * np.abs(intercept)
    return Fit.of(SEED_CURVATURE, variables, tracks.behind.quadratic / intercept, weight)


def _fit_reach(tracks: Tracks, pair: Pair, density: FloatArray) -> Fit:
    first = pair[0]
    variables = (tracks.s, *(of[first] / tracks.layer_z[first] for of in (tracks.x, tracks.y)))
    return Fit.of(SEED_REACH, variables, reach(tracks, pair) / tracks.s, density * tracks.weight * np.abs(tracks.s))
