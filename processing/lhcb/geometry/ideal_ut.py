"""The ideal UT from its dimensions: four layers of vertical staves, the two inner layers rotated by +-5 degrees.

Dimensions: layout of staves, modules and sensors as in the LHCb tracker upgrade TDR (LHCb-TDR-015); pitches, sensor
sizes, distances of the staves and z were fitted to the simulated events of LHCb. The sensors as built have pitches of
0.1875 and 0.0935 mm instead. The formulas agree with the geometry file of these events within its rounding
(tests/processing/lhcb/geometry).

A stave carries 14 rows of sensors, alternating between its two faces. Near the beam a row holds finer sensors: two side
by side, and four of half the height in the two middle rows of the innermost stave.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.lhcb.banks.ut import N_BOARDS, N_LANES, N_STRIPS
from hltnode.protocol.lhcb.lhcb_id import UtChannel, ut_channel_id

N_LAYERS = 4
N_SECTORS = 1048
STAVES_PER_SIDE = (8, 8, 9, 9)
N_ROWS = 14

# mm
LAYER_Z = (2327.5, 2372.5, 2597.5, 2642.5)
STAVE_STAGGER = 5.0  # distance of the middle of a stave from its layer's plane, in front or behind
FACE_STAGGER = 2.2175  # the silicon of the two faces, from the middle of the stave
PITCH = 0.190
FINE_PITCH = 0.095
SENSOR_HEIGHT = 97.28
ROW_PITCH = 96.08  # rows overlap by 1.2 mm, and so do the innermost staves of the two sides
# Distance between staves before and behind the plane. The nearer ones have the smaller distance, so that straight
# tracks see the same overlap.
STAVE_PITCH_NEAR = (95.885, 95.885, 95.909, 95.909)
STAVE_PITCH_FAR = (96.275, 96.275, 96.251, 96.251)

STEREO_ANGLE = np.radians((0.0, 5.0, -5.0, 0.0))
# dx/dy of the strips of a layer in the reconstruction (docs/physics/detector.md).
DX_DY = (0.0, 0.08748867, -0.0874886, 0.0)

# Positions of sensors along a stave, by number 2 module + (1 - face) from the bottom. Only the innermost stave uses 7
# and 8, because its two middle rows are halved.
_PLACES = {0: range(16)} | dict.fromkeys(range(1, 9), (*range(7), *range(9, 16)))
_FINE_PLACES = {0: range(5, 11), 1: (5, 6, 9, 10)}
_HALVED_PLACES = range(6, 10)
# Of two neighbouring fine sensors, sector 0 is on the side of the stagger of the stave, except here: on the other side.
_REVERSED_PLACES = (5, 10)


class Sector(NamedTuple):
    """One sensor: its place in the numbering, and its geometry in mm."""

    side: int
    layer: int
    stave: int
    face: int
    module: int
    sector: int
    pitch: float
    height: float
    u: float  # middle of the sensor across the stave, from the stave's axis
    v: float  # middle of the sensor along the stave, from the height of the beam
    stave_x: float  # where the stave's axis crosses y = 0
    shift_y: float  # of the stave along its axis
    z: float


def sectors() -> list[Sector]:
    """All sensors in the order of the geometry file: layers, sides, staves from -x to +x, places from the bottom."""
    return [
        sector
        for layer in range(N_LAYERS)
        for side in (0, 1)
        for stave in _staves_from_left(layer, side)
        for sector in _sectors_of_stave(layer, side, stave)
    ]


def sector_parameters() -> dict[str, NDArray[np.float32]]:
    """The arrays f32[1048] of the geometry file (docs/formats/geometry-files.md), by its names."""
    rows = sectors()
    pitch, height, u, v, stave_x, shift_y, z = np.array([row[6:] for row in rows]).T
    angle = STEREO_ANGLE[[row.layer for row in rows]]
    first_u = u - 0.5 * (N_STRIPS - 1) * pitch
    columns = {
        "pitch": pitch,
        "dy": height * np.cos(angle),
        "dp0diX": pitch / np.cos(angle),
        "dp0diY": -pitch * np.sin(angle),
        "dp0diZ": np.zeros(len(rows)),
        "p0X": stave_x + first_u / np.cos(angle),
        "p0Y": shift_y - first_u * np.sin(angle) + (v - 0.5 * height) * np.cos(angle),
        "p0Z": z,
        "cos": np.cos(angle),
    }
    return {name: values.astype(np.float32) for name, values in columns.items()}


def lanes() -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    """The sector (-1: none) and the channel id of strip 0 (0: none) of each lane, [1440], index 6 board + lane.

    In each layer three groups of staves are cabled in order; each begins with a new board: the outer ones of side 0,
    the two innermost of both sides, the outer ones of side 1.
    """
    sector_of_lane = np.full(N_BOARDS * N_LANES, -1, np.int32)
    channel_of_lane = np.zeros(N_BOARDS * N_LANES, np.uint32)
    group, lane = (-1, -1), 0
    for number, row in enumerate(sectors()):
        group_of_row = (row.layer, 1 if row.stave < 2 else 2 * row.side)
        if group_of_row[0] != group[0]:
            lane = 64 * N_LANES * row.layer
        elif group_of_row != group:
            lane = -(-lane // N_LANES) * N_LANES
        group = group_of_row
        channel = UtChannel(*(np.array(value, np.uint32) for value in (*row[:6], 0)))
        sector_of_lane[lane] = number
        channel_of_lane[lane] = ut_channel_id(channel)
        lane += 1
    return sector_of_lane, channel_of_lane


def _staves_from_left(layer: int, side: int) -> range:
    n = STAVES_PER_SIDE[layer]
    return range(n) if side else range(n - 1, -1, -1)


def _sectors_of_stave(layer: int, side: int, stave: int) -> list[Sector]:
    behind = 1 if (stave + side) % 2 else -1  # the stave's stagger in z
    pitch_of_staves = (STAVE_PITCH_FAR if behind > 0 else STAVE_PITCH_NEAR)[layer]
    distance = 0.5 * ROW_PITCH + stave * pitch_of_staves
    across = distance if side else -distance
    stave_x = across / np.cos(STEREO_ANGLE[layer])
    # A rotated stave keeps its middle at the height of the beam; the innermost ones are rotated about the beam instead.
    shift_y = -across * np.sin(STEREO_ANGLE[layer]) if stave == 0 else 0.0
    found = []
    for place in _PLACES[stave]:
        row = place - (place > 6) - (place > 8)
        on_back = behind if row % 2 == 0 else -behind
        z = LAYER_Z[layer] + behind * STAVE_STAGGER + on_back * FACE_STAGGER
        halved = stave == 0 and place in _HALVED_PLACES
        height = SENSOR_HEIGHT / 2 if halved else SENSOR_HEIGHT
        v = (row - 0.5 * (N_ROWS - 1)) * ROW_PITCH
        if halved:
            v += 0.5 * height if place % 2 else -0.5 * height
        if place in _FINE_PLACES.get(stave, ()):
            width = N_STRIPS * FINE_PITCH
            upwards = place < 8
            sensors = [(sector, FINE_PITCH, 0.5 * width) for sector in ((0, 1) if upwards else (1, 0))]
        else:
            sensors = [(0, PITCH, 0.0)]
        for sector, pitch, offset in sensors:
            with_stagger = (sector == 0) != (place in _REVERSED_PLACES)
            u = behind * offset if with_stagger else -behind * offset
            face, module = 1 - place % 2, place // 2
            found.append(Sector(side, layer, stave, face, module, sector, pitch, height, u, v, stave_x, shift_y, z))
    return found
