"""Rows of the TPC and its field: built in, or from the file `tpc.json` of a folder."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.detector_constants import (
    FIELD_KG,
    FIELD_Z2,
    FIELD_Z4,
    HALF_LENGTH,
    ROW_GROUPS,
    SLICE_ANGLE,
)
from hltnode.protocol.alice.tpc_banks import N_ROWS, Y_OFFSET, Y_STEP, Z_START, Z_STEP

FILE_NAME = "tpc.json"
NUMBERS_AFTER_ROWS = 4
"""Half length, and the three numbers of the field."""
GEOMETRY_FLOATS = 2 * N_ROWS + NUMBERS_AFTER_ROWS
"""x of the rows, the numbers after them, the length of the pads of each row."""
MAX_FIELD_KG = 20.0
MAX_FIELD_CHANGE = 0.2
"""Largest relative difference of Bz from its value at the centre, anywhere in the TPC."""
_MAX_X = Y_OFFSET * Y_STEP / math.tan(SLICE_ANGLE / 2.0)
_MAX_Z = 0xFFFF * Z_STEP + Z_START


@dataclass(frozen=True, slots=True, kw_only=True)
class SolenoidField:
    """Bz along the beam: b0 (1 + z2 (z^2 - r^2/2) + z4 (z^4 - 3 z^2 r^2 + 3/8 r^4)).

    Both polynomials solve Laplace's equation, as the field of a solenoid without sources does. b0 in kG, z2 in 1/cm2,
    z4 in 1/cm4; z and r, the distance from the beam, in cm.
    """

    b0: float
    z2: float = 0.0
    z4: float = 0.0

    def bz(self, r_square: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bz in kG."""
        z_square = z * z
        second = z_square - 0.5 * r_square
        fourth = z_square * z_square - 3.0 * z_square * r_square + 0.375 * r_square * r_square
        return self.b0 * (1.0 + self.z2 * second + self.z4 * fourth)


UNIFORM_FIELD = SolenoidField(b0=FIELD_KG)
SOLENOID_FIELD = SolenoidField(b0=FIELD_KG, z2=FIELD_Z2, z4=FIELD_Z4)
"""Lower at the pads (detector_constants.FIELD_Z2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TpcGeometry:
    """Rows of a slice, drift volume and field.

    row_x, pad_width, pad_length: f64[159] in cm; the length is that along x. half_length: cm from the central electrode
    to the pads.
    """

    row_x: NDArray[np.float64]
    pad_width: NDArray[np.float64]
    pad_length: NDArray[np.float64]
    half_length: float
    field: SolenoidField

    @property
    def half_width(self) -> NDArray[np.float64]:
        """Largest |y| of each row, f64[159] in cm: where the next slice begins."""
        return self.row_x * math.tan(SLICE_ANGLE / 2.0)

    def as_floats(self) -> NDArray[np.float32]:
        """f32[GEOMETRY_FLOATS] for the kernels: x of the rows, half length, b0, z2, z4, lengths of pads."""
        field = self.field
        numbers = (self.half_length, field.b0, field.z2, field.z4)
        return np.array([*self.row_x, *numbers, *self.pad_length], np.float32)


def builtin_geometry(field: SolenoidField = UNIFORM_FIELD) -> TpcGeometry:
    """The TPC of Run 1 and 2."""
    return TpcGeometry(
        row_x=np.concatenate([start + step * np.arange(n) for start, step, n, _ in ROW_GROUPS]),
        pad_width=np.concatenate([np.full(n, width) for _, _, n, width in ROW_GROUPS]),
        # Pads are as long as the rows of their group are apart.
        pad_length=np.concatenate([np.full(n, step) for _, step, n, _ in ROW_GROUPS]),
        half_length=HALF_LENGTH,
        field=field,
    )


def load_geometry(directory: Path | None = None) -> TpcGeometry:
    """The built-in TPC, or that of `tpc.json` in a folder; what the file leaves out is as in the built-in one.

    Raises ValueError, which names the file and the value.
    """
    if directory is None:
        return builtin_geometry()
    path = directory / FILE_NAME
    try:
        return _checked(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def geometry_bytes(directory: Path | None) -> NDArray[np.uint8]:
    """The content of the constant column: TpcGeometry.as_floats."""
    return load_geometry(directory).as_floats().view(np.uint8)


def _document_of(geometry: TpcGeometry) -> dict[str, Any]:
    """The content of a file."""
    field = geometry.field
    return {
        "row_x": geometry.row_x.tolist(),
        "pad_width": geometry.pad_width.tolist(),
        "pad_length": geometry.pad_length.tolist(),
        "half_length": geometry.half_length,
        "field": [field.b0, field.z2, field.z4],
    }


def _numbers(document: dict[str, Any], key: str, n: int) -> NDArray[np.float64]:
    value = document[key]
    values = value if isinstance(value, list) else [value]
    if len(values) != n or not all(isinstance(each, (int, float)) and np.isfinite(each) for each in values):
        raise ValueError(f"{key!r}: {n} finite numbers expected")
    return np.array(values, np.float64)


def _checked(given: object) -> TpcGeometry:
    builtin = _document_of(builtin_geometry())
    if not isinstance(given, dict):
        raise ValueError("an object with 'row_x', 'pad_width', 'pad_length', 'half_length' or 'field' expected")
    if unknown := sorted(set(given) - set(builtin)):
        raise ValueError(f"unknown key {unknown[0]!r}; there are {', '.join(map(repr, builtin))}")
    document = {**builtin, **given}
    row_x, pad_width = _numbers(document, "row_x", N_ROWS), _numbers(document, "pad_width", N_ROWS)
    pad_length = _numbers(document, "pad_length", N_ROWS)
    (half_length,) = _numbers(document, "half_length", 1)
    b0, z2, z4 = _numbers(document, "field", 3)
    if not (row_x[0] > 0.0 and (np.diff(row_x) > 0.0).all() and row_x[-1] < _MAX_X):
        raise ValueError(f"'row_x': rows from the beam outwards expected, in 0 to {_MAX_X:.1f} cm")
    if not ((pad_width > 0.0) & (pad_width < 10.0)).all():
        raise ValueError("'pad_width': pads of 0 to 10 cm expected")
    if not ((pad_length > 0.0) & (pad_length < 10.0)).all():
        raise ValueError("'pad_length': pads of 0 to 10 cm expected")
    if not 0.0 < half_length < _MAX_Z:
        raise ValueError(f"'half_length': 0 to {_MAX_Z:.1f} cm expected")
    field = SolenoidField(b0=float(b0), z2=float(z2), z4=float(z4))
    r, z = np.meshgrid(np.linspace(0.0, row_x[-1], 9), np.linspace(0.0, half_length, 9))
    with np.errstate(over="ignore", invalid="ignore"):
        relative = field.bz(r * r, z) / b0 if b0 else np.array([np.nan])
    if not (abs(b0) <= MAX_FIELD_KG and np.abs(relative - 1.0).max() <= MAX_FIELD_CHANGE):
        raise ValueError(
            f"'field': b0 of at most {MAX_FIELD_KG:g} kG and not 0 expected, with z2 and z4 that change Bz by at most "
            f"{100 * MAX_FIELD_CHANGE:g} % in the TPC"
        )
    return TpcGeometry(
        row_x=row_x, pad_width=pad_width, pad_length=pad_length, half_length=float(half_length), field=field
    )
