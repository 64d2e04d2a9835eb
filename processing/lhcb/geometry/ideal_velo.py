"""The ideal upgrade VELO from its dimensions: 52 L-shaped modules of 4 sensors, rotated by 45 degrees about the beam.

Dimensions: the pixel pitch, the chip size and the module positions are published (LHCb-TDR-013;
docs/physics/detector.md); the placement of the four sensors on a module has four parameters, named below, that follow
from the closest approach to the beam. The result agrees with the geometry file of the simulated events
(tests/processing/lhcb/geometry).
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

N_MODULES = 52
SENSORS_PER_MODULE = 4
N_SENSORS = N_MODULES * SENSORS_PER_MODULE
CHIPS_PER_SENSOR = 3
CHIP_SIDE = 256
N_COLUMNS = CHIPS_PER_SENSOR * CHIP_SIDE
N_ROWS = CHIP_SIDE

PIXEL_PITCH = 0.055  # mm, VeloPix
WIDE_PIXEL = 0.1375  # mm: the last column of a chip and the first of the next reach across the gap between chips

# In the frame of a module rotated back by 45 degrees (mm).
INNER_EDGE = 5.1  # closest approach of the active edge to the beam
SENSOR_OVERLAP = 0.11  # two sensors of an L overlap by two pixels, so that no track passes between them
OUTER_SHIFT = 1.0  # the sensor behind the inner one of the vertical arm is shifted along its length
HALF_THICKNESS = 0.581  # distance of the sensor planes from the module's z: two on each face

# z of the modules (mm) as (first, last, step) of the equidistant groups: a dense region about the collisions with two
# gaps in front, and wider distances downstream. Neighbouring modules belong to opposite sides.
_Z_GROUPS = ((-287.5, -200.0, 12.5), (-137.5, -125.0, 12.5), (-62.5, 275.0, 12.5), (312.5, 325.0, 12.5))
_Z_STATIONS = (387.5, 487.5, 587.5, 637.5, 687.5, 737.5)
_STATION_STEP = 12.5


def module_z() -> NDArray[np.float32]:
    """z of the 52 modules, f32[52], mm."""
    z = [np.arange(first, last + step / 2, step) for first, last, step in _Z_GROUPS]
    z += [np.array([first, first + _STATION_STEP]) for first in _Z_STATIONS]
    return np.concatenate(z).astype(np.float32)


def column_edges() -> NDArray[np.float64]:
    """Local x of the 769 edges of the columns, mm: pixels of 0.055, wide ones at the two borders between chips."""
    widths = np.full(N_COLUMNS, PIXEL_PITCH)
    for border in range(CHIP_SIDE, N_COLUMNS, CHIP_SIDE):
        widths[border - 1 : border + 1] = WIDE_PIXEL
    return np.concatenate([[0.0], np.cumsum(widths)])


def local_x() -> NDArray[np.float32]:
    """Local x of the column centres, f32[768], mm."""
    return np.array([(low + high) / 2 for low, high in pairwise(column_edges())], dtype=np.float32)


def x_pitch() -> NDArray[np.float32]:
    """Distance from each column centre to the next, f32[768], mm; the last column has the plain pitch."""
    centres = column_edges()[:-1] + np.diff(column_edges()) / 2
    return np.append(np.diff(centres), PIXEL_PITCH).astype(np.float32)


def local_to_global() -> NDArray[np.float32]:
    """f32[208, 12]: rotation (row-major) and translation (mm) of each sensor.

    In the module frame (u, v), u along the normal of the short arm, each sensor is given by a corner and two
    directions. Rotating by 45 degrees gives x = (u - v)/sqrt 2, y = (u + v)/sqrt 2; modules of odd number are rotated
    by a further 180 degrees.
    """
    length = column_edges()[-1]
    width = N_ROWS * PIXEL_PITCH
    # (corner u, corner v), direction of the columns, direction of the rows, side of the module plane
    placements = (
        ((-INNER_EDGE - width, INNER_EDGE - length), (0, 1), (1, 0), -1),
        ((-INNER_EDGE - 2 * width + SENSOR_OVERLAP, INNER_EDGE - OUTER_SHIFT), (0, -1), (1, 0), 1),
        ((INNER_EDGE, INNER_EDGE + width), (-1, 0), (0, -1), 1),
        ((INNER_EDGE - length, INNER_EDGE + 2 * width - SENSOR_OVERLAP), (1, 0), (0, -1), -1),
    )
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2.0)
    ltg = np.zeros((N_MODULES, SENSORS_PER_MODULE, 12))
    for module, z in enumerate(module_z()):
        side = 1.0 if module % 2 == 0 else -1.0
        for sensor, (corner, along_columns, along_rows, face) in enumerate(placements):
            rotation = np.zeros((3, 3))
            rotation[:2, 0] = side * turn @ np.array(along_columns)
            rotation[:2, 1] = side * turn @ np.array(along_rows)
            rotation[:, 2] = np.cross(rotation[:, 0], rotation[:, 1])
            ltg[module, sensor, :9] = rotation.reshape(9)
            ltg[module, sensor, 9:11] = side * turn @ np.array(corner)
            ltg[module, sensor, 11] = z + face * HALF_THICKNESS
    return ltg.reshape(N_SENSORS, 12).astype(np.float32)
