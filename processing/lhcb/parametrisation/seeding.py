"""Fits for the search in the SciFi alone: which pairs and triples of hits can be a track from the collisions."""

import numpy as np

from hltnode.processing.lhcb.parametrisation.flights import MEV
from hltnode.processing.lhcb.parametrisation.forms import SEED_MOMENTUM, SEED_REACH, SEED_SAG, Z_REFERENCE, FloatArray
from hltnode.processing.lhcb.parametrisation.functions import INTERCEPT_UNIT
from hltnode.processing.lhcb.parametrisation.polynomials import Fit
from hltnode.processing.lhcb.parametrisation.tracks import Tracks

Triple = tuple[int, int, int]

TRIPLES: dict[str, Triple] = {"first_layers": (0, 4, 8), "last_layers": (3, 7, 11)}
"""First, middle and last x layer of the two searches."""

# Tracks are spread evenly in slopes; those of collisions are denser at small ones, about as 1 / (angle^2 + this).
_SMALL_ANGLE_SQUARED = 0.0025
# This part of the tracks, the straightest, is called straight.
_STRAIGHT = 0.1


def fit_seeds(tracks: Tracks) -> tuple[dict[str, Fit], dict[str, FloatArray]]:
    """The functions of seeds; and how far tracks are from sag and reach, because of their origins: variance
    f64[2], a constant term (mm^2) and the factor of the square of intercept (m) or s (c/GeV)."""
    density = 1.0 / np.sqrt(tracks.velo.tx**2 + tracks.velo.ty**2 + _SMALL_ANGLE_SQUARED)
    fits = {"momentum": _fit_momentum(tracks, density)}
    spreads = {}
    for name, triple in TRIPLES.items():
        for kind, fit in (("sag", _fit_sag), ("reach", _fit_reach)):
            found = fit(tracks, triple, density)
            fits[f"{kind}_{name}"] = found
            bend = chord(tracks, triple)[1] if fit is _fit_sag else tracks.s
            spreads[f"{kind}_{name}"] = _spread(found.residuals * bend, bend, density)
    return fits, spreads


def chord(tracks: Tracks, triple: Triple) -> tuple[FloatArray, FloatArray]:
    """Slope, and intercept (m) at z = 0, of the chords through first and last layer."""
    first, _, last = triple
    z, x = tracks.layer_z, tracks.x
    slope = (x[last] - x[first]) / (z[last] - z[first])
    return slope, (x[first] - slope * z[first]) / INTERCEPT_UNIT


def sag(tracks: Tracks, triple: Triple) -> FloatArray:
    """Distance (mm) in x of the middle crossing from the chord."""
    first, middle, _ = triple
    slope, _ = chord(tracks, triple)
    distance: FloatArray = tracks.x[middle] - tracks.x[first] - slope * (tracks.layer_z[middle] - tracks.layer_z[first])
    return distance


def reach(tracks: Tracks, triple: Triple) -> FloatArray:
    """x (mm) in the last layer, less that of a straight line from the origin through the crossing of the first."""
    first, _, last = triple
    reached: FloatArray = tracks.x[last] - tracks.x[first] * (tracks.layer_z[last] / tracks.layer_z[first])
    return reached


def _spread(residuals: FloatArray, bend: FloatArray, density: FloatArray) -> FloatArray:
    """The variance a + b bend^2 that the residuals have: a from straight tracks, b from those that bend."""
    straight = np.abs(bend) < np.quantile(np.abs(bend), _STRAIGHT)
    squared, weight = np.square(residuals), np.square(density)
    constant = np.average(squared[straight], weights=weight[straight])
    more = np.average(np.maximum(squared[~straight] - constant, 0.0), weights=weight[~straight])
    return np.array([constant, more / np.average(np.square(bend[~straight]), weights=weight[~straight])])


def _fit_momentum(tracks: Tracks, density: FloatArray) -> Fit:
    behind = tracks.behind
    intercept = (behind.x - behind.tx * Z_REFERENCE) / INTERCEPT_UNIT
    # What matters is the error relative to the momentum; straight tracks have none that the origin does not spoil.
    weight = density * tracks.weight * intercept / tracks.s * np.minimum(1.0, np.abs(tracks.s) / 0.1)
    variables = (intercept, behind.tx, behind.y / Z_REFERENCE)
    return Fit.of(SEED_MOMENTUM, variables, tracks.s / intercept / MEV, weight)


def _fit_sag(tracks: Tracks, triple: Triple, density: FloatArray) -> Fit:
    slope, intercept = chord(tracks, triple)
    weight = density * tracks.weight * np.abs(intercept)
    variables = (intercept, slope, tracks.y[triple[1]] / tracks.layer_z[triple[1]])
    return Fit.of(SEED_SAG, variables, sag(tracks, triple) / intercept, weight)


def _fit_reach(tracks: Tracks, triple: Triple, density: FloatArray) -> Fit:
    first = triple[0]
    variables = (tracks.s, *(of[first] / tracks.layer_z[first] for of in (tracks.x, tracks.y)))
    return Fit.of(SEED_REACH, variables, reach(tracks, triple) / tracks.s, density * tracks.weight * np.abs(tracks.s))
