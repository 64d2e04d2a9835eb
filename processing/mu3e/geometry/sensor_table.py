"""The sensors of the pixel detector as kernels read them: four layers in the middle, and two recurl stations."""

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Record, SharedTypes, constant_column
from hltnode.processing.mu3e.detector_constants import (
    LAYER_LADDERS,
    LAYER_RADII,
    LAYER_SENSORS,
    PIXEL_MM,
    RECURL_CENTRE,
)
from hltnode.protocol.mu3e.hit_banks import MAX_SENSORS, PIXELS

CENTRE, UPSTREAM, DOWNSTREAM = 0, 1, 2
"""Stations: the middle, the recurl station at negative z and that at positive z."""
NO_LAYER = 0xFF
SOURCES = 16
"""Sources are quadrants of the inner two layers, of the outer two layers, and of the two recurl stations."""
SENSOR = Record(
    "mu3e_sensor",
    np.dtype(
        [(name, "<f4") for name in ("x", "y", "z", "ux", "uy", "uz", "vx", "vy", "vz", "nx", "ny", "nz")]
        + [("layer", "u1"), ("station", "u1"), ("ladder", "u1"), ("place", "u1")]
    ),
    {
        "x": "mm, of the centre",
        "y": "mm",
        "z": "mm",
        "ux": "unit vector along columns, around the axis",
        "vx": "unit vector along rows, along the axis",
        "nx": "unit vector away from the axis",
        "layer": "0 to 3; no_layer: there is no such sensor",
        "station": "0 in the middle, 1 upstream, 2 downstream",
        "ladder": "number in the layer, around the axis",
        "place": "number in the ladder, along z",
    },
)
sensor_types = SharedTypes(
    __file__,
    "sensor_types",
    records=(SENSOR,),
    sizes={"no_layer": NO_LAYER, "max_sensors": MAX_SENSORS, "pixels_of_sensor": PIXELS},
)
sensor_table = constant_column("mu3e.sensor", SENSOR, lambda _: MAX_SENSORS)
"""One element for each number that a hit can name. Pixel (column, row) has its middle at the centre of the sensor +
(column - 124.5) * 0.08 mm * u + (row - 124.5) * 0.08 mm * v."""


@cache
def sensors() -> NDArray[np.void]:
    """SENSOR[2844]: by station, layer, ladder and place. Read only."""
    parts = [
        _layer(station, layer, middle)
        for station, middle, layers in (
            (CENTRE, 0.0, (0, 1, 2, 3)),
            (UPSTREAM, -RECURL_CENTRE, (2, 3)),
            (DOWNSTREAM, RECURL_CENTRE, (2, 3)),
        )
        for layer in layers
    ]
    found = np.concatenate(parts)
    found.flags.writeable = False
    return found


def _layer(station: int, layer: int, middle: float) -> NDArray[np.void]:
    ladders, of_ladder = LAYER_LADDERS[layer], LAYER_SENSORS[layer]
    number = np.arange(ladders * of_ladder)
    ladder, place = number // of_ladder, number % of_ladder
    around = 2.0 * np.pi * ladder / ladders
    made = np.zeros(len(number), SENSOR.dtype)
    made["nx"], made["ny"] = np.cos(around), np.sin(around)
    made["ux"], made["uy"] = -np.sin(around), np.cos(around)
    made["vz"] = 1.0
    made["x"], made["y"] = LAYER_RADII[layer] * np.cos(around), LAYER_RADII[layer] * np.sin(around)
    made["z"] = middle + (place - (of_ladder - 1) / 2.0) * PIXELS * PIXEL_MM
    made["layer"], made["station"], made["ladder"], made["place"] = layer, station, ladder, place
    return made


def source_of_sensors() -> NDArray[np.int64]:
    """i64[sensors], the number of the source of each sensor, below SOURCES."""
    of = sensors()
    ladders = np.array(LAYER_LADDERS)[of["layer"]]
    quadrant = 4 * of["ladder"].astype(np.int64) // ladders
    group = np.where(of["station"] == CENTRE, of["layer"] >= 2, of["station"].astype(np.int64) + 1)
    result: NDArray[np.int64] = group * 4 + quadrant
    return result


def pixel_positions(hits: NDArray[np.void]) -> NDArray[np.float64]:
    """f64[hits, 3] in mm: the middles of the pixels of HIT[hits], whose sensors exist."""
    of = sensors()[hits["sensor"]]
    along_u = ((hits["column"] - (PIXELS - 1) / 2.0) * PIXEL_MM)[:, None]
    along_v = ((hits["row"] - (PIXELS - 1) / 2.0) * PIXEL_MM)[:, None]
    centre, u, v = (_vectors(of, names) for names in (("x", "y", "z"), ("ux", "uy", "uz"), ("vx", "vy", "vz")))
    return centre + along_u * u + along_v * v


def table_bytes(directory: Path | None) -> NDArray[np.uint8]:  # noqa: ARG001
    """The content of sensor_table. The detector is built in, so a geometry folder changes nothing."""
    table = np.zeros(MAX_SENSORS, SENSOR.dtype)
    table["layer"] = NO_LAYER
    table[: len(sensors())] = sensors()
    return table.view(np.uint8)


def _vectors(of: NDArray[np.void], names: tuple[str, str, str]) -> NDArray[np.float64]:
    return np.column_stack([of[name].astype(np.float64) for name in names])
