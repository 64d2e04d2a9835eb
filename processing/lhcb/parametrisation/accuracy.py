"""Accuracy of the parametrisation against simulated flights, by momentum."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hltnode.processing.lhcb.geometry.ideal_ut import LAYER_Z as UT_LAYER_Z
from hltnode.processing.lhcb.parametrisation.forms import Z_UT, FloatArray
from hltnode.processing.lhcb.parametrisation.functions import BeforeUt, BehindMagnet, InUt, Seeds
from hltnode.processing.lhcb.parametrisation.tracks import Line, Tracks

MOMENTUM_BINS = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, np.inf)
"""GeV."""

MOMENTUM_FROM = "momentum from, GeV"
"""Name of the row with the lower edges of the bins."""

_QUANTILES = (0.68, 0.99)

MRAD = 1000.0
PER_CENT = 100.0

Table = Mapping[str, list[float]]
"""The 68 % and 99 % quantiles of the error of each quantity, in each bin of momentum."""


def of_behind_magnet(functions: BehindMagnet, tracks: Tracks, line: Line) -> Table:
    """Errors of the state at Z_REFERENCE from the momentum, and of the other quantities and the momentum from the
    kink."""
    measured = tracks.behind
    kink = measured.tx - line.tx
    foreseen, of_kink = functions.curve(line, functions.kink(line, tracks.s)), functions.curve(line, kink)
    in_layers = [of_kink.x_at(z) - x for z, x in zip(tracks.layer_z.tolist(), tracks.x, strict=True)]
    errors = {
        "x from momentum, mm": foreseen.x - measured.x,
        "tx from momentum, mrad": MRAD * (foreseen.tx - measured.tx),
        "x from kink, mm": np.stack(in_layers),
        "y from kink, mm": of_kink.y - measured.y,
        "ty from kink, mrad": MRAD * (of_kink.ty - measured.ty),
        "momentum from kink, per cent": PER_CENT * (functions.momentum(line, kink) / tracks.s - 1.0),
    }
    return _table(errors, tracks.p)


def of_before_ut(functions: BeforeUt, tracks: Tracks) -> Table:
    """Errors of the state at the UT from the momentum."""
    x, tx = functions.state(tracks.velo, tracks.s, Z_UT)
    return _table({"x, mm": x - tracks.ut.x, "tx, mrad": MRAD * (tx - tracks.ut.tx)}, tracks.p)


def of_in_ut(functions: InUt, tracks: Tracks) -> Table:
    """Errors of x in the layers of the UT from the kink."""
    kink = tracks.behind.tx - tracks.velo.tx
    layers = zip(UT_LAYER_Z, tracks.ut_x, strict=True)
    return _table({"x, mm": np.stack([functions.x(tracks.velo, kink, z) - x for z, x in layers])}, tracks.p)


def of_seeds(functions: Seeds, tracks: Tracks) -> Table:
    """Errors of the momentum from a SciFi track alone."""
    relative = functions.momentum(tracks.behind) / tracks.s - 1.0
    return _table({"momentum, per cent": PER_CENT * relative}, tracks.p)


def _table(errors: Mapping[str, FloatArray], p: FloatArray) -> Table:
    in_bin = np.digitize(p, MOMENTUM_BINS) - 1
    found = {}
    for quantity, values in errors.items():
        bins = [values[..., in_bin == number] for number in range(len(MOMENTUM_BINS) - 1)]
        for part in _QUANTILES:
            found[f"{quantity}, {part:.0%}"] = [_rounded(np.quantile(np.abs(of_bin), part)) for of_bin in bins]
    return found


def _rounded(value: np.floating) -> float:
    return float(f"{value:.2g}")


def accuracy_text(accuracy: Mapping[str, Any]) -> str:
    """The tables as text."""
    starts = accuracy[MOMENTUM_FROM]
    lines = [f"{'from a momentum of (GeV)':<46}" + "".join(f"{start:>8g}" for start in starts)]
    for part, table in accuracy.items():
        if part != MOMENTUM_FROM:
            lines += [part, *(f"  {name:<44}" + "".join(f"{v:>8g}" for v in row) for name, row in table.items())]
    return "\n".join(lines)
