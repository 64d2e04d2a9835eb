"""The ideal muon stations from their dimensions: chambers in four planes each, projective towards the collisions.

Dimensions: division into regions, chambers, pads and strips as in the LHCb muon system TDR and the upgrade's read-out
(LHCb-TDR-004, LHCb-TDR-014; docs/formats/muon-banks.md); active sizes of chambers, planes and distances were fitted to
the simulated events of LHCb. Pads agree with the geometry file of these events within 0.3 mm in x and 5 mm in y (the
file shifts single chambers), and exactly in z (tests/processing/lhcb/geometry).

The chambers of a quarter of a region form an L. Neighbouring chambers overlap: columns alternate between an inner and
an outer pair of planes, rows between the front and the back plane of the pair. Positions are given on the middle plane
of the station; those of a chamber before or behind it are scaled by its z.
"""

import numpy as np
from numpy.typing import NDArray

N_STATIONS = 4
N_REGIONS = 4
N_QUARTERS = 4

# mm; per station M2..M5
STATION_Z_RIGHT = (15262.5, 16469.8, 17663.4, 18872.3)  # x > 0
STATION_Z_LEFT = (15260.6, 16464.8, 17657.6, 18865.7)
INNER_PLANES = 58.5  # distance of the planes from the middle of the station
OUTER_PLANES = 142.5
# The first chamber begins here; columns of chambers follow at this distance (half of it in R1, twice in R3 and R4).
GAP_RIGHT = (7.01, 8.10, 10.50, 11.10)
GAP_LEFT = (8.20, 9.40, 11.39, 11.50)
COLUMN_PITCH = (607.24, 654.96, 702.68, 750.40)
ROW_PITCH = (252.47, 272.31, 292.15, 311.99)
SHIFT_Y = (0.0, -2.34, 0.0, 0.0)
# Active area of chambers.
WIDTH = ((308.0, 332.0, 356.0, 380.0), (612.0, 660.0, 708.0, 756.0), *2 * ((1224.0, 1320.0, 1416.0, 1512.0),))
HEIGHT = (252.8, 272.8, 292.8, 312.8)
PAD_GAP = 0.2416  # between the active areas of pads, vertically
# The stations hang vertically in the pit; the beam rises by this slope, so they are tilted in its frame.
LEAN = 0.003601

_COLUMN_FACTOR = (0.5, 1.0, 2.0, 2.0)
_ROWS_OF_PADS = (8, 4, 2, 1)  # per chamber, in regions R1..R4

# Grids of the three tables, (gridX, gridY) by 4 station + region (docs/formats/geometry-files.md).
_PAD_X = np.repeat((48, 48, 12, 12), N_REGIONS)
_EIGHT = np.full(N_STATIONS * N_REGIONS, 8)
_X_STRIP_Y = np.array((1, 2, 2, 2, 1, 2, 2, 2, 8, 2, 2, 2, 8, 2, 2, 2))
_Y_STRIP_X = np.array((8, 4, 2, 2, 8, 4, 2, 2, 12, 4, 2, 2, 12, 4, 2, 2))
PAD_GRID = (_PAD_X, _EIGHT)
X_STRIP_GRID = (_PAD_X, _X_STRIP_Y)
Y_STRIP_GRID = (_Y_STRIP_X, _EIGHT)
GRIDS = (PAD_GRID, X_STRIP_GRID, Y_STRIP_GRID)

_Table = tuple[
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.float32],
    NDArray[np.float32],
    NDArray[np.uint32],
    tuple[NDArray[np.float32], ...],
]


def table(grid: tuple[NDArray[np.int64], NDArray[np.int64]]) -> _Table:
    """gridX, gridY, half sizes in x and y, offsets, and positions per station, for MuonTable.

    A strip covers several pads; its middle and size are those of their bounding box.
    """
    grid_x, grid_y = grid
    cells = 3 * N_QUARTERS * grid_x * grid_y
    positions, offsets = [], []
    size_x: list[NDArray[np.float64]] = []
    size_y: list[NDArray[np.float64]] = []
    for station in range(N_STATIONS):
        parts = []
        for region in range(N_REGIONS):
            layout = N_REGIONS * station + region
            gx, gy = int(grid_x[layout]), int(grid_y[layout])
            x, y = cells_of_quarter(gx, gy)
            for quarter in range(N_QUARTERS):
                middles, half_sizes = _cells(station, region, quarter, gx, gy)
                parts.append(middles[x, y])
                # Each half row of a block has the size of its first cell.
                _, first = np.unique(y * 4 + 2 * x // gx, return_index=True)
                size_x.append(half_sizes[x, y, 0][first])
                size_y.append(half_sizes[x, y, 1][first])
        positions.append(np.concatenate(parts).astype(np.float32))
        of_station = cells[N_REGIONS * station : N_REGIONS * (station + 1)]
        offsets.append(np.cumsum(of_station) - of_station)
    return (
        grid_x.astype(np.int32),
        grid_y.astype(np.int32),
        np.concatenate(size_x).astype(np.float32),
        np.concatenate(size_y).astype(np.float32),
        np.concatenate(offsets).astype(np.uint32),
        tuple(positions),
    )


def cells_of_quarter(gx: int, gy: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """x and y of the cells of a quarter in order: row by row, without the block at the beam."""
    y, x = np.divmod(np.arange(4 * gx * gy), 2 * gx)
    keep = (x >= gx) | (y >= gy)
    return x[keep], y[keep]


def _cells(
    station: int, region: int, quarter: int, gx: int, gy: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Middles [2 gx, 2 gy, 3] and half sizes [2 gx, 2 gy, 2] of the cells of a quarter, including those at the beam."""
    pads_x = int(_PAD_X[N_REGIONS * station + region])
    per_chamber = pads_x // 2 if region == 3 else pads_x
    width, height = WIDTH[region][station] / per_chamber, HEIGHT[station] / _ROWS_OF_PADS[region]
    right, upper = quarter < 2, quarter in (0, 3)
    column, in_column = np.divmod(np.arange(2 * pads_x), per_chamber)
    row, in_row = np.divmod(np.arange(16), _ROWS_OF_PADS[region])
    middle = (STATION_Z_RIGHT if right else STATION_Z_LEFT)[station]
    gap = (GAP_RIGHT if right else GAP_LEFT)[station]

    inner = (column + (not right) + (region == 1)) % 2 == 0
    back = (row if upper else row + 1) % 2 == 0
    plane = middle + np.where(inner, INNER_PLANES, OUTER_PLANES)[:, None] * np.where(back, 1, -1)[None, :]
    chamber_x = gap + (column + 0.5) * COLUMN_PITCH[station] * _COLUMN_FACTOR[region]
    chamber_y = (row + 0.5) * ROW_PITCH[station]
    to_right, up = 1 if right else -1, 1 if upper else -1
    x = to_right * (chamber_x[:, None] * plane / middle + ((in_column - 0.5 * (per_chamber - 1)) * width)[:, None])
    in_chamber_y = (in_row - 0.5 * (_ROWS_OF_PADS[region] - 1)) * height
    y = SHIFT_Y[station] + up * (chamber_y * plane / middle + in_chamber_y)
    pads = np.stack((x, y, plane + LEAN * y), axis=-1)

    n_x, n_y = pads_x // gx, 8 // gy
    of_cells = pads.reshape(2 * gx, n_x, 2 * gy, n_y, 3)
    low, high = of_cells.min(axis=(1, 3)), of_cells.max(axis=(1, 3))
    half_sizes = 0.5 * ((high - low)[..., :2] + (width, height - PAD_GAP))
    return 0.5 * (low + high), half_sizes
