"""The ideal electromagnetic calorimeter from its dimensions: square cells of three sizes in three regions.

Sizes and numbers of cells: LHCb-TDR-002 (2000) and A. A. Alves Jr. et al. (LHCb), JINST 3 (2008) S08005, section 6.2;
the front, the plane of the shower maximum and the back, the tilt of 3.6 mrad and the numbering of the cells are those
of the simulated events (docs/physics/calorimeter.md).
"""

import numpy as np
from numpy.typing import NDArray

N_CELLS = 6016
MODULE_SIZE = 121.9
"""mm, of a cell of the outer region; a cell of the middle has half of it, one of the inner region a third."""
FIRST_CELLS = (0, 2688, 4480, 6016)
"""First cell of the outer, middle and inner region, and the end."""
N_NEIGHBOURS = 9
CHANNELS_OF_CARD = 32
NO_CELL = 0xFFFF
CODE_OFFSET = 129
BOARDS_OF_SOURCE = 3
PEDESTAL = 0.4
"""ADC counts."""
SHOWER_MAXIMUM_Z = 12650.0
"""mm, for the transverse energy of a cluster."""

_TILT = 0.0036009923
# Distances of the front, the plane of the shower maximum and the back from the origin, mm.
_PLANES = (12602.917, 12650.417, 13034.917)
_LOCAL_Y, _LOCAL_Z = -46.379833, -12932.417
# Gain in MeV per count: the largest energy of a cell is 7 GeV + 10 GeV / sin(theta), as LHCb chose it.
_GAIN = 0.9314 / 3839.0
REGIONS = ((32, 26, 16, 10, 1), (32, 20, 16, 12, 2), (24, 18, 8, 6, 3))
"""Half width and half height of each region and of its hole, in its own cells, and cells of a module along a side."""
_STEPS = 6
"""Steps of the common grid in a module: each cell covers whole steps."""


def _corners() -> list[NDArray[np.int64]]:
    """Lower left corners of the cells of each region, in its own cells: row by row from below, without the hole."""
    corners = []
    for half_x, half_y, hole_x, hole_y, _ in REGIONS:
        y, x = np.indices((2 * half_y, 2 * half_x)).reshape(2, -1)
        x, y = x - half_x, y - half_y
        in_hole = (x >= -hole_x) & (x < hole_x) & (y >= -hole_y) & (y < hole_y)
        corners.append(np.column_stack([x, y])[~in_hole])
    return corners


def local_centres() -> NDArray[np.float64]:
    """Centre of each cell in the frame of the calorimeter, f64[6016, 2], mm."""
    regions = zip(_corners(), REGIONS, strict=True)
    return np.concatenate([(corner + 0.5) * (MODULE_SIZE / region[-1]) for corner, region in regions])


def to_local() -> NDArray[np.float32]:
    """f32[3, 4]: from LHCb's frame to that of the calorimeter, whose z = 0 is in the middle of the cells."""
    cosine = np.sqrt(1.0 - _TILT**2)
    matrix = [[1.0, 0.0, 0.0, 0.0], [0.0, cosine, _TILT, _LOCAL_Y], [0.0, -_TILT, cosine, _LOCAL_Z]]
    return np.array(matrix, np.float32)


def planes() -> NDArray[np.float32]:
    """f32[3, 4]: a, b, c, d of the front, the shower maximum and the back, a x + b y + c z + d = 0, mm."""
    cosine = np.sqrt(1.0 - _TILT**2)
    return np.array([[0.0, -_TILT, cosine, -distance] for distance in _PLANES], np.float32)


def centres() -> NDArray[np.float32]:
    """x and y of the centre of each cell in LHCb's frame, at its middle in depth, f32[6016, 2], mm."""
    x, y = local_centres().T
    centre: NDArray[np.float32] = np.column_stack(
        [x, np.sqrt(1.0 - _TILT**2) * (y - _LOCAL_Y) + _TILT * _LOCAL_Z]
    ).astype(np.float32)
    return centre


def gains() -> NDArray[np.float32]:
    """MeV per ADC count of each cell, f32[6016]."""
    radius = np.hypot(*centres().T.astype(np.float64))
    sine = radius / np.hypot(radius, SHOWER_MAXIMUM_Z)
    gain: NDArray[np.float32] = (_GAIN * (7000.0 + 10000.0 / sine)).astype(np.float32)
    return gain


def neighbours() -> NDArray[np.uint16]:
    """u16[6016, 9]: the cells that touch each cell with a side or a corner, by number, then NO_CELL."""
    half_x, half_y = REGIONS[0][0] * _STEPS, REGIONS[0][1] * _STEPS
    # The cell of each step, with a frame of one step around the calorimeter.
    cell_of_step = np.full((2 * half_x + 2, 2 * half_y + 2), NO_CELL, np.uint16)
    corners = [corner * (_STEPS // region[-1]) for corner, region in zip(_corners(), REGIONS, strict=True)]
    for first, corner, region in zip(FIRST_CELLS, corners, REGIONS, strict=False):
        for x, y in np.ndindex(_STEPS // region[-1], _STEPS // region[-1]):
            cells = np.arange(first, first + len(corner))
            cell_of_step[corner[:, 0] + half_x + x + 1, corner[:, 1] + half_y + y + 1] = cells
    found = []
    for corner, region in zip(corners, REGIONS, strict=True):
        steps = np.arange(-1, _STEPS // region[-1] + 1)
        x, y = (offset.ravel() for offset in np.meshgrid(steps, steps))
        around = (x == steps[0]) | (x == steps[-1]) | (y == steps[0]) | (y == steps[-1])
        x, y = corner[:, :1] + half_x + 1 + x[around], corner[:, 1:] + half_y + 1 + y[around]
        cells = np.sort(cell_of_step[x, y], axis=1)
        cells[:, 1:][cells[:, 1:] == cells[:, :-1]] = NO_CELL
        found.append(np.sort(cells, axis=1)[:, :N_NEIGHBOURS])
    return np.concatenate(found)


def channels() -> NDArray[np.uint16]:
    """u16[188, 32]: the cells of each card, in the order of their numbers."""
    return np.arange(N_CELLS, dtype=np.uint16).reshape(-1, CHANNELS_OF_CARD)


def board_cards() -> NDArray[np.int32]:
    """i32[63, 3]: the card of the board in each slot of each source, in order; -1 in the last slot, which is empty."""
    n_cards = N_CELLS // CHANNELS_OF_CARD
    n_sources = -(-n_cards // BOARDS_OF_SOURCE)
    cards = np.arange(n_sources * BOARDS_OF_SOURCE, dtype=np.int32)
    cards[n_cards:] = -1
    return cards.reshape(n_sources, BOARDS_OF_SOURCE)
