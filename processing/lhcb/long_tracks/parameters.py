"""How the magnet bends: the parametrisation of long tracks, and its fit to trajectories (docs/physics/long-tracks.md).

One file, `long_track_parameters.json`, holds it: `LongTrackParameters.load` and `save`. `fit` computes it from
trajectories through a field map, whatever they come from; `builtin` is the one of the built-in field.

A track comes as a straight line (x, y, tx, ty) from the VELO. Behind the magnet it is again nearly a line. With `kink`
= its slope in x at z = 8520 mm minus tx, everything else follows:

    x(z) = x_line(z) + kink * (z - z_magnet + (curvature + cubic dz) dz^2),    dz = z - 8520 mm
    y(z) = y_line(z) + ty * kink * (y_shift + y_slope dz)
    q/p  = (sine_after - sine_before) / (polarity * kick),    sine = tx / sqrt(1 + tx^2 + ty^2)

z_magnet, curvature, cubic, y_shift, y_slope and kick are polynomials of (tx, ty, kink). The reflections of the magnet
decide which powers they have: z_magnet, curvature, cubic and kick do not change with the sign of (tx, kink) together,
y_shift and y_slope do; none changes with the sign of ty.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Record, SharedTypes, constant_column
from hltnode.processing.lhcb.geometry.errors import GeometryError

Float64Array = NDArray[np.float64]

PARAMETERS_FILE = "long_track_parameters.json"
Z_REFERENCE = 8520.0
"""mm: the plane in the middle of the SciFi tracker where `kink` is taken."""

N_KINK_POWERS, N_TX_POWERS, N_TY_POWERS = 5, 2, 3
_SHAPE = (N_KINK_POWERS, N_TX_POWERS, N_TY_POWERS)
# Highest total power of a fitted term.
_MAX_POWER = 6

FUNCTIONS = ("z_magnet", "curvature", "cubic", "kick", "y_shift", "y_slope")
_ODD = frozenset({"y_shift", "y_slope"})

LONG_TRACK_PARAMETERS = Record(
    "long_track_parameters",
    np.dtype([("polarity", "<f4"), *((name, "<f4", _SHAPE) for name in FUNCTIONS)]),
    {
        "polarity": "-1: down, +1: up",
        "z_magnet": "mm, where the line of the VELO and the tangent at the reference plane cross",
        "curvature": "1/mm",
        "cubic": "1/mm^2",
        "kick": "MeV",
        "y_shift": "mm, at the reference plane, per kink and ty",
        "y_slope": "per kink and ty",
    },
)
"""Coefficients [k][i][j] of kink^k tx^(2 i + o) ty^(2 j); o = k mod 2 for those that do not change with the sign of
(tx, kink), 1 - k mod 2 for y_shift and y_slope."""

parameter_types = SharedTypes(
    __file__,
    "long_track_parameter_types",
    records=(LONG_TRACK_PARAMETERS,),
    sizes={
        "z_scifi_reference": Z_REFERENCE,
        "n_kink_powers": N_KINK_POWERS,
        "n_tx_powers": N_TX_POWERS,
        "n_ty_powers": N_TY_POWERS,
    },
)

long_track_parameters = constant_column("long_track_parameters", LONG_TRACK_PARAMETERS)


@dataclass(frozen=True, slots=True, eq=False)
class Trajectories:
    """Tracks through the magnet, for the fit of the parameters; f64 in mm, slopes and 1/MeV.

    before [n, 4]: x, y, tx, ty at `z_before`, behind the VELO, where the field is still weak; q_over_p [n];
    after [n, m, 2]: x, y at the planes `z_after` [m] in the SciFi tracker.
    """

    before: Float64Array
    z_before: float
    q_over_p: Float64Array
    after: Float64Array
    z_after: Float64Array


@dataclass(frozen=True, slots=True, eq=False)
class LongTrackParameters:
    """The parametrisation: polarity, and f64[5, 2, 3] of each of FUNCTIONS (module docstring)."""

    polarity: float
    coefficients: Mapping[str, Float64Array]

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read long_track_parameters.json from a directory. Raises GeometryError, which names the file."""
        path = Path(directory) / PARAMETERS_FILE
        try:
            content = json.loads(path.read_text())
            polarity = float(content["polarity"])
            coefficients = {name: np.array(content[name], np.float64) for name in FUNCTIONS}
        except OSError as error:
            raise GeometryError(f"{path}: cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise GeometryError(f"{path}: {type(error).__name__}: {error}") from error
        if abs(polarity) != 1.0:
            raise GeometryError(f"{path}: polarity is {polarity:g}, expected 1 or -1")
        for name, values in coefficients.items():
            if values.shape != _SHAPE or not np.isfinite(values).all():
                raise GeometryError(f"{path}: {name} has the shape {values.shape}, expected finite numbers {_SHAPE}")
        return cls(polarity, coefficients)

    @classmethod
    def builtin(cls) -> Self:
        """The parameters of the built-in field."""
        return cls.load(Path(__file__).parent)

    def save(self, directory: Path | str) -> None:
        """Write long_track_parameters.json to a directory."""
        content = {"polarity": self.polarity, **{name: self.coefficients[name].tolist() for name in FUNCTIONS}}
        (Path(directory) / PARAMETERS_FILE).write_text(json.dumps(content, indent=1) + "\n")

    def to_bytes(self) -> bytes:
        """For the kernels: the record long_track_parameters."""
        record = np.zeros(1, LONG_TRACK_PARAMETERS.dtype)
        record["polarity"] = self.polarity
        for name in FUNCTIONS:
            record[name] = self.coefficients[name]
        return record.tobytes()

    def value(self, name: str, tx: Float64Array, ty: Float64Array, kink: Float64Array) -> Float64Array:
        """A function of FUNCTIONS for tracks."""
        result: Float64Array = _terms(name, tx, ty, kink) @ self.coefficients[name].ravel()
        return result

    @classmethod
    def fit(cls, tracks: Trajectories, polarity: float) -> Self:
        """The parameters that describe trajectories in a field of this polarity, by least squares."""
        _, _, tx, ty = tracks.before.T
        dz = tracks.z_after - Z_REFERENCE
        line = tracks.before[:, None, :2] + tracks.before[:, None, 2:] * (tracks.z_after - tracks.z_before)[:, None]
        from_line = tracks.after - line
        # x - x_line = k0 + kink dz + k2 dz^2 + k3 dz^3 for each track; k0 = kink (8520 - z_magnet).
        k0, kink, k2, k3 = np.linalg.lstsq(np.stack([dz**k for k in range(4)], axis=1), from_line[:, :, 0].T)[0]
        y0, y1 = np.linalg.lstsq(np.stack([dz**0, dz], axis=1), from_line[:, :, 1].T)[0]
        after_x, after_y = tx + kink, ty + y1
        sine = after_x / np.sqrt(1 + after_x**2 + after_y**2) - tx / np.sqrt(1 + tx**2 + ty**2)
        # A quotient is fitted with the square of its denominator as weight, so that straight tracks do not disturb.
        weights = {name: kink for name in FUNCTIONS} | {name: kink * ty for name in _ODD}
        products = {
            "z_magnet": kink * Z_REFERENCE - k0,
            "curvature": k2,
            "cubic": k3,
            "kick": kink * sine / (tracks.q_over_p * polarity),
            "y_shift": y0,
            "y_slope": y1,
        }
        coefficients = {}
        for name in FUNCTIONS:
            terms = _terms(name, tx, ty, kink) * weights[name][:, None]
            used = _powers(name).sum(axis=1) <= _MAX_POWER
            scale = np.sqrt((terms[:, used] ** 2).sum(axis=0))
            found = np.zeros(len(used))
            found[used] = np.linalg.lstsq(terms[:, used] / scale, products[name], rcond=1e-8)[0] / scale
            coefficients[name] = found.reshape(_SHAPE)
        return cls(polarity, coefficients)


def _powers(name: str) -> NDArray[np.int64]:
    """The powers of (kink, tx, ty) of each coefficient, i64[30, 3]."""
    k, i, j = np.indices(_SHAPE).reshape(3, -1)
    odd = 1 - k % 2 if name in _ODD else k % 2
    return np.stack([k, 2 * i + odd, 2 * j], axis=1)


def _terms(name: str, tx: Float64Array, ty: Float64Array, kink: Float64Array) -> Float64Array:
    k, i, j = _powers(name).T
    terms: Float64Array = kink[:, None] ** k * tx[:, None] ** i * ty[:, None] ** j
    return terms
