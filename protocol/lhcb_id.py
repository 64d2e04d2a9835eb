"""LHCbIDs of VELO hits (formats.md B8): 28 bits of channel, detector type in the top four bits.

All functions take plain integers or arrays of them; arrays give u32 arrays.
"""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

DETECTOR_TYPE_SHIFT = 28
# Detector types of the 2022 scheme.
VP_TYPE = 2
UT_TYPE = 3
FT_TYPE = 5

SENSOR_SHIFT = 18
CHIP_SHIFT = 16
COLUMN_SHIFT = 8
# orfy and orfx: how the cluster lies around its pixel; not part of the pixel's identity.
ORIENTATION_BITS = 1 << 26 | 1 << 27

# mypy types `u32 array << int` as a signed array of unknown width, NumPy 2 gives u32; hence the casts.
Ids = TypeVar("Ids", int, NDArray[np.uint32])


def velo_lhcb_id(sensor: Ids, chip: Ids, column: Ids, row: Ids) -> Ids:
    """The LHCbID of a pixel (see velo_channel for the ranges); orientation bits are 0.  Arrays must be u32."""
    pixel = sensor << SENSOR_SHIFT | chip << CHIP_SHIFT | column << COLUMN_SHIFT | row
    return cast(Ids, pixel | VP_TYPE << DETECTOR_TYPE_SHIFT)


def velo_channel(lhcb_id: Ids) -> tuple[Ids, Ids, Ids, Ids]:
    """The pixel of a VELO LHCbID: sensor 0..207, chip 0..2, column and row 0..255 within the chip."""
    return (
        cast(Ids, lhcb_id >> SENSOR_SHIFT & 0xFF),
        cast(Ids, lhcb_id >> CHIP_SHIFT & 0x3),
        cast(Ids, lhcb_id >> COLUMN_SHIFT & 0xFF),
        cast(Ids, lhcb_id & 0xFF),
    )


def detector_type(lhcb_id: Ids) -> Ids:
    """The top four bits: VP_TYPE, UT_TYPE, FT_TYPE or another."""
    return cast(Ids, lhcb_id >> DETECTOR_TYPE_SHIFT)


def without_orientation(lhcb_id: Ids) -> Ids:
    """The id with the orientation bits cleared, so that ids of one pixel compare equal."""
    return cast(Ids, lhcb_id & (0xFFFF_FFFF ^ ORIENTATION_BITS))
