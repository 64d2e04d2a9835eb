"""Fits of the functions from a straight line before the magnet to UT and SciFi, and back to the momentum."""

import numpy as np

from hltnode.processing.lhcb.geometry.ideal_ut import LAYER_Z as UT_LAYER_Z
from hltnode.processing.lhcb.parametrisation.flights import MEV
from hltnode.processing.lhcb.parametrisation.forms import (
    BEFORE_UT,
    BEHIND_MAGNET,
    IN_UT,
    Z_MIDDLE_UT,
    Z_REFERENCE,
    Z_UT,
)
from hltnode.processing.lhcb.parametrisation.polynomials import Fit
from hltnode.processing.lhcb.parametrisation.tracks import Line, Tracks, sine

# mm to m: keeps the matrices of fits well conditioned.
_METRE = 1000.0
# Below this angle all flights have the same weight.
_FLAT_ANGLE = 0.03


def fit_behind_magnet(tracks: Tracks, line: Line) -> dict[str, Fit]:
    """The functions of BEHIND_MAGNET for straight lines at one of the places before the magnet.

    A function that is multiplied by the kink is fitted as a quotient, with errors weighted by the kink, so that
    straight tracks have no influence.
    """
    behind = tracks.behind
    kink = behind.tx - line.tx
    bend = {"kink": kink, "s": tracks.s}
    shift_x = behind.x - line.x_at(Z_REFERENCE)
    shift_y = behind.y - line.y_at(Z_REFERENCE)
    change = MEV * (sine(behind.tx, behind.ty) - sine(line.tx, line.ty)) / tracks.s
    # From the momentum to the kink, ty does not change.
    change_without_y = MEV * (sine(behind.tx, line.ty) - sine(line.tx, line.ty)) / tracks.s
    values = {
        "z_magnet": Z_REFERENCE - shift_x / kink,
        "curvature": behind.quadratic / kink,
        "cubic": behind.cubic / kink,
        "kick": change,
        "kick_of_momentum": change_without_y,
        "y_shift": shift_y / (line.ty * kink),
        "y_slope": (behind.ty - line.ty) / (line.ty * kink),
    }
    weight = tracks.weight * np.abs(kink)
    # Momenta must be most accurate at small angles, where most tracks are, but flights are spread evenly.
    at_small_angles = tracks.weight / (_FLAT_ANGLE + np.hypot(line.tx, line.ty))
    weights = {"kick": at_small_angles, "kick_of_momentum": tracks.weight} | dict.fromkeys(
        ("y_shift", "y_slope"), weight * np.abs(line.ty)
    )
    return {
        name: Fit.of(form, (bend[form.bend], line.tx, line.ty), values[name], weights.get(name, weight))
        for name, form in BEHIND_MAGNET.items()
    }


def fit_before_ut(tracks: Tracks) -> dict[str, Fit]:
    """The functions of BEFORE_UT."""
    line = tracks.velo
    bend = tracks.ut.tx - line.tx
    values = {
        "z_magnet": Z_UT - (tracks.ut.x - line.x_at(Z_UT)) / bend,
        "kick": MEV * (sine(tracks.ut.tx, line.ty) - sine(line.tx, line.ty)) / tracks.s,
    }
    weights = {"z_magnet": tracks.weight * np.abs(bend), "kick": tracks.weight}
    return {
        name: Fit.of(form, (tracks.s, line.tx, line.ty), values[name], weights[name])
        for name, form in BEFORE_UT.items()
    }


def fit_in_ut(tracks: Tracks) -> dict[str, Fit]:
    """The functions of IN_UT, the parabola through the four layers."""
    line = tracks.velo
    kink = tracks.behind.tx - line.tx
    z = np.array(UT_LAYER_Z)
    levers = np.stack([x - line.x_at(at) for x, at in zip(tracks.ut_x, z.tolist(), strict=True)]) / kink
    dz = (z - Z_MIDDLE_UT) / _METRE
    parabola = np.linalg.lstsq(dz[:, None] ** np.arange(3), levers, rcond=None)[0]
    weight = tracks.weight * np.abs(kink)
    return {
        name: Fit.of(form, (kink, line.tx, line.ty), values / _METRE**power, weight)
        for power, ((name, form), values) in enumerate(zip(IN_UT.items(), parabola, strict=True))
    }
