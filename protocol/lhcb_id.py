"""LHCbIDs of VELO hits (formats.md B8): 28 bits of channel, detector type in the top four bits.

All functions work element by element on u32 arrays.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.uint32]

# Detector types of the 2022 scheme.
VP_TYPE = 2
UT_TYPE = 3
FT_TYPE = 5

_DETECTOR_TYPE_SHIFT = np.uint32(28)
_SENSOR_SHIFT = np.uint32(18)
_CHIP_SHIFT = np.uint32(16)
_COLUMN_SHIFT = np.uint32(8)
_BYTE = np.uint32(0xFF)
_CHIP_MASK = np.uint32(0x3)
_VP_BITS = np.uint32(VP_TYPE << 28)
# orfy and orfx (bits 26, 27): how the cluster lies around its pixel; not part of the pixel's identity.
_ALL_BUT_ORIENTATION = np.uint32(0xFFFF_FFFF ^ (1 << 26 | 1 << 27))


def velo_lhcb_id(sensor: Ids, chip: Ids, column: Ids, row: Ids) -> Ids:
    """The LHCbIDs of pixels: sensor 0..207, chip 0..2, column and row 0..255 in the chip; no orientation bits."""
    ids: Ids = sensor << _SENSOR_SHIFT | chip << _CHIP_SHIFT | column << _COLUMN_SHIFT | row | _VP_BITS
    return ids


def velo_channel(lhcb_id: Ids) -> tuple[Ids, Ids, Ids, Ids]:
    """The pixels of VELO LHCbIDs: sensor, chip, column and row, as velo_lhcb_id takes them."""
    return (
        lhcb_id >> _SENSOR_SHIFT & _BYTE,
        lhcb_id >> _CHIP_SHIFT & _CHIP_MASK,
        lhcb_id >> _COLUMN_SHIFT & _BYTE,
        lhcb_id & _BYTE,
    )


def detector_type(lhcb_id: Ids) -> Ids:
    """The top four bits: VP_TYPE, UT_TYPE, FT_TYPE or another."""
    return lhcb_id >> _DETECTOR_TYPE_SHIFT


def without_orientation(lhcb_id: Ids) -> Ids:
    """The ids with the orientation bits cleared, so that ids of one pixel compare equal."""
    return lhcb_id & _ALL_BUT_ORIENTATION
