"""The ideal SciFi tracker from its dimensions: three stations of four layers (x, u, v, x), leaning forward with the
beam.

Dimensions: layout of modules, mats and SiPMs as in the LHCb tracker upgrade TDR (LHCb-TDR-015) and publications on the
SciFi; distances of mats and layers were fitted to the simulated events of LHCb. The formulas agree with the geometry
file of these events within its rounding, 2 um (tests/processing/lhcb/geometry).

Frames. A *mat* has its fibres along v, away from the beam height, and channels along u. A *module* has four
neighbouring mats; in the stereo layers it is rotated about its middle at the height of the beam. A *station* leans
about the x axis through its middle, so that its layers are perpendicular to the sloping beam.
"""

import numpy as np
from numpy.typing import NDArray

N_STATIONS = 3
LAYERS_PER_STATION = 4
N_LAYERS = N_STATIONS * LAYERS_PER_STATION
QUARTERS_PER_LAYER = 4
MODULES_PER_QUARTER = (5, 5, 6)
MATS_PER_MODULE = 4
SIPMS_PER_MAT = 4
CHANNELS_PER_SIPM = 128
# Links (one SiPM each) of the banks of a quarter: one module per bank, but six modules over five banks in station 3.
LINKS_OF_BANKS = ((16, 16, 16, 16, 16), (16, 16, 16, 16, 16), (16, 20, 20, 20, 20))
# Mats are numbered by channel id >> 9 minus this, so that station 1 starts at 0.
FIRST_MAT = 512
N_MAT_INDICES = 1536

# mm
STATION_Z = (7931.0, 8613.0, 9298.0)
LAYER_Z = (-104.9, -35.1, 35.1, 104.9)  # from the station's middle
LEAN = 0.003601  # rad
STEREO_ANGLE = np.radians((0.0, -5.0, 5.0, 0.0))
MODULE_PITCH = 530.0
MAT_PITCH = 130.8
MIRROR_GAP = 1.5  # the mirrored ends of the fibres, from the height of the beam
FIBRE_LENGTH = 2424.0
# Fibres of the innermost mat are cut for the beam pipe: in x layers, and in stereo layers where they lean towards the
# beam pipe or away from it.
BEAM_PIPE_CUT = 115.0
BEAM_PIPE_CUT_NEAR = 138.0
BEAM_PIPE_CUT_FAR = 92.0

CHANNEL_PITCH = 0.250
DIE_GAP = 0.220  # between the two dies of a SiPM
SIPM_PITCH = 32.7
# Distance from the edge of the first channel to the middle of the mat.
U_BEGIN = -0.5 * (3 * SIPM_PITCH + CHANNELS_PER_SIPM * CHANNEL_PITCH + DIE_GAP)

# The read-out side of layers 0 and 2 of a station is opposite to that of layers 1 and 3.
_U_DIRECTION_BELOW = (1, -1, 1, -1)


def first_channel_of_bank() -> NDArray[np.uint32]:
    """The channel id of link 0, cell 0 of each bank, u32[240]."""
    first = []
    for station in range(N_STATIONS):
        before = np.cumsum([0, *LINKS_OF_BANKS[station][:-1]])
        for quarter in range(LAYERS_PER_STATION * QUARTERS_PER_LAYER):
            first += [(station + 1) << 18 | quarter << 14 | int(links) * CHANNELS_PER_SIPM for links in before]
    return np.array(first, np.uint32)


def mat_parameters() -> dict[str, NDArray[np.float32]]:
    """Arrays of scifi_geometry.bin (docs/formats/geometry-files.md): f32[1536]; [1536, 3] for points and directions."""
    values: dict[str, NDArray[np.float64]] = {name: np.zeros((N_MAT_INDICES, 3)) for name in ("mirrorPoint", "ddx")}
    values.update((name, np.zeros(N_MAT_INDICES)) for name in ("dxdy", "dzdy", "globaldy"))
    used = np.zeros(N_MAT_INDICES, np.bool_)
    for station in range(N_STATIONS):
        for layer in range(LAYERS_PER_STATION):
            for quarter in range(QUARTERS_PER_LAYER):
                for module in range(MODULES_PER_QUARTER[station]):
                    for mat in range(MATS_PER_MODULE):
                        index = (((station << 2 | layer) << 2 | quarter) << 3 | module) << 2 | mat
                        point, direction, dxdy, globaldy = _mat(station, layer, quarter, module, mat)
                        used[index] = True
                        values["mirrorPoint"][index] = point
                        values["ddx"][index] = direction
                        values["dxdy"][index] = dxdy
                        values["dzdy"][index] = np.tan(LEAN)
                        values["globaldy"][index] = globaldy
    for name, constant in (
        ("uBegin", U_BEGIN),
        ("halfChannelPitch", 0.5 * CHANNEL_PITCH),
        ("dieGap", DIE_GAP),
        ("sipmPitch", SIPM_PITCH),
    ):
        values[name] = np.where(used, constant, 0.0)
    return {name: column.astype(np.float32) for name, column in values.items()}


def _mat(
    station: int, layer: int, quarter: int, module: int, mat: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
    """Middle of the mirrored end, direction of rising u, dx/dy of the fibres, and their extent in y."""
    upper = 1 if quarter >= 2 else -1
    side = 1 if quarter % 2 else -1
    turn = STEREO_ANGLE[layer]
    u_direction = -_U_DIRECTION_BELOW[layer] * upper
    u = u_direction * (mat - 0.5 * (MATS_PER_MODULE - 1)) * MAT_PITCH
    # The innermost mat of the innermost module.
    if module == 0 and side * u < -MAT_PITCH:
        leaning = turn * side * upper
        cut = BEAM_PIPE_CUT if leaning == 0 else BEAM_PIPE_CUT_NEAR if leaning > 0 else BEAM_PIPE_CUT_FAR
    else:
        cut = 0.0
    v = upper * (MIRROR_GAP + cut)
    centre = side * (module + 0.5) * MODULE_PITCH / np.cos(turn)
    x = centre + u * np.cos(turn) - v * np.sin(turn)
    y = u * np.sin(turn) + v * np.cos(turn)
    point = np.array([0.0, 0.0, STATION_Z[station]]) + _leaning(x, y, LAYER_Z[layer])
    direction = _leaning(u_direction * np.cos(turn), u_direction * np.sin(turn), 0.0)
    globaldy = upper * (FIBRE_LENGTH - cut) * np.cos(turn) * np.cos(LEAN)
    return point, direction, -np.tan(turn) / np.cos(LEAN), globaldy


def _leaning(x: float, y: float, z: float) -> NDArray[np.float64]:
    return np.array([x, y * np.cos(LEAN) - z * np.sin(LEAN), y * np.sin(LEAN) + z * np.cos(LEAN)])
