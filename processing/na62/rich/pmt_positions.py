"""Where the photomultipliers of the RICH are: two spots of hexagonally packed tubes.

The mirrors send the light of a track to two spots of about 1,000 photomultipliers of 16 mm each. A position here is
relative to the image of the beam axis in its spot, so a ring whose light is shared by both spots is one circle.
"""

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SPOTS = 2
PITCH = 18.0
"""mm between neighbours: tubes of 16 mm in hexagonal packing, as NA62 has them (NA62 Collaboration, "The beam and
detector of the NA62 experiment at CERN", JINST 12 (2017) P05025, section 6)."""
SPOT_RADIUS = 295.5
"""mm: the circle that holds the centres of the tubes of a spot; with this pitch, about 1,000."""
_ROW_HEIGHT = PITCH * 3.0**0.5 / 2.0
_ROWS = int(SPOT_RADIUS // _ROW_HEIGHT) + 4
FILE_NAME = "rich_pmts.csv"


@cache
def spot_positions() -> NDArray[np.float64]:
    """f64[tubes, 2], x and y in mm of the tubes of one spot, row by row from below."""
    rows = np.arange(-int(SPOT_RADIUS // _ROW_HEIGHT), int(SPOT_RADIUS // _ROW_HEIGHT) + 1)
    columns = np.arange(-int(SPOT_RADIUS // PITCH) - 1, int(SPOT_RADIUS // PITCH) + 2)
    y, x = np.meshgrid(rows * _ROW_HEIGHT, columns * PITCH, indexing="ij")
    x = x + np.where(rows % 2, PITCH / 2.0, 0.0)[:, None]
    inside = np.hypot(x, y) <= SPOT_RADIUS
    return np.column_stack([x[inside], y[inside]])


PMTS_OF_SPOT = len(spot_positions())
N_PMTS = SPOTS * PMTS_OF_SPOT
"""Tubes of both spots; those of the second spot have the numbers from PMTS_OF_SPOT."""


@cache
def _tubes_of_cells() -> NDArray[np.int64]:
    """Number of the tube of a spot at [row + _ROWS, place + _ROWS], -1 without one; a row has places 18 mm apart."""
    x, y = spot_positions().T
    rows = np.rint(y / _ROW_HEIGHT).astype(np.int64)
    places = np.rint(x / PITCH - (rows % 2) / 2.0).astype(np.int64)
    tubes = np.full((2 * _ROWS + 1, 2 * _ROWS + 1), -1, np.int64)
    tubes[rows + _ROWS, places + _ROWS] = np.arange(PMTS_OF_SPOT)
    return tubes


def nearest_tubes(places: NDArray[np.float64]) -> NDArray[np.int64]:
    """The tube of a spot in whose hexagonal cell each place lies, f64[places, 2] in mm; -1 where there is none."""
    x, y = places.T
    limit = float(_ROWS - 2)
    rows = np.clip(np.floor(y / _ROW_HEIGHT)[:, None] + np.arange(2), -limit, limit).astype(np.int64)
    columns = np.clip(np.rint(x[:, None] / PITCH - (rows % 2) / 2.0), -limit, limit).astype(np.int64)
    away = np.hypot(x[:, None] - PITCH * (columns + (rows % 2) / 2.0), y[:, None] - _ROW_HEIGHT * rows)
    nearest = np.arange(len(places)), away.argmin(1)
    found: NDArray[np.int64] = _tubes_of_cells()[rows[nearest] + _ROWS, columns[nearest] + _ROWS]
    return np.where(away[nearest] <= PITCH / np.sqrt(3.0) + 1e-9, found, -1)


def positions(directory: Path | None = None) -> NDArray[np.float32]:
    """f32[N_PMTS, 2], x and y in mm of each tube: built-in, or from `rich_pmts.csv` of a folder, a tube in each line.

    Raises ValueError, which names the file.
    """
    if directory is None:
        return np.tile(spot_positions(), (SPOTS, 1)).astype(np.float32)
    path = directory / FILE_NAME
    try:
        read = np.loadtxt(path, delimiter=",", dtype=np.float32, ndmin=2)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    if read.shape != (N_PMTS, 2) or not np.isfinite(read).all() or np.abs(read).max() > 1000.0:
        raise ValueError(f"{path}: expected {N_PMTS} lines of x,y in mm, at most 1000, not an array of {read.shape}")
    return read


def position_bytes(directory: Path | None) -> NDArray[np.uint8]:
    """The content of the constant column."""
    return positions(directory).reshape(-1).view(np.uint8)
