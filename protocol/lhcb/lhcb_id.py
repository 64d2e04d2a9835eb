"""LHCbIDs of VELO, UT and SciFi hits (docs/formats/lhcb-id.md): 28 bits of channel, detector type in the top four bits.

All functions work element by element on u32 arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.uint32]

# Detector types of the 2022 scheme.
VP_TYPE = 2
UT_TYPE = 3
FT_TYPE = 5

# Detector types of samples from before 2022 (docs/formats/lhcb-id.md), by their type in the 2022 scheme.
_OLD_TYPES = {VP_TYPE: 8, UT_TYPE: 11, FT_TYPE: 10}

# Bit 22 of every UT channel: the only station type of the upgrade's numbering.
_UT_STATION_TYPE = 1 << 22
# Bits of a UT channel: field name -> (lowest bit, number of bits).  From the board map of the 2022 numbering.
_UT_FIELDS = {"strip": (0, 9), "sector": (9, 1), "module": (10, 3), "face": (13, 1), "stave": (14, 4), "layer": (18, 2)}
_UT_SIDE_SHIFT = 20

_DETECTOR_TYPE_SHIFT = np.uint32(28)
_SENSOR_SHIFT = np.uint32(18)
_CHIP_SHIFT = np.uint32(16)
_COLUMN_SHIFT = np.uint32(8)
_BYTE = np.uint32(0xFF)
_CHIP_MASK = np.uint32(0x3)
_VP_BITS = np.uint32(VP_TYPE << 28)
# orfy and orfx (bits 26, 27): set if the centre of the cluster is not the centre of its pixel. They do not identify the
# pixel.
_ALL_BUT_ORIENTATION = np.uint32(0xFFFF_FFFF ^ (1 << 26 | 1 << 27))


def velo_lhcb_id(sensor: Ids, chip: Ids, column: Ids, row: Ids) -> Ids:
    """The LHCbIDs of pixels: sensor 0..207, chip 0..2, column and row 0..255 in the chip; no orientation bits."""
    ids: Ids = sensor << _SENSOR_SHIFT | chip << _CHIP_SHIFT | column << _COLUMN_SHIFT | row | _VP_BITS
    return ids


def velo_channel(lhcb_id: Ids) -> tuple[Ids, Ids, Ids, Ids]:
    """The pixels of VELO LHCbIDs: sensor, chip, column and row; the inverse of velo_lhcb_id."""
    return (
        lhcb_id >> _SENSOR_SHIFT & _BYTE,
        lhcb_id >> _CHIP_SHIFT & _CHIP_MASK,
        lhcb_id >> _COLUMN_SHIFT & _BYTE,
        lhcb_id & _BYTE,
    )


def detector_type(lhcb_id: Ids) -> Ids:
    """The top four bits: VP_TYPE, UT_TYPE, FT_TYPE or another."""
    return lhcb_id >> _DETECTOR_TYPE_SHIFT


def in_2022_scheme(lhcb_id: Ids) -> Ids:
    """The ids of VELO, UT and SciFi hits with the detector types of the 2022 scheme; `lhcb_id` may be of either scheme.

    VELO and SciFi channels are the same in both schemes. UT channels had other numbers before 2022 and cannot be
    compared.
    """
    new_type = np.arange(16, dtype=np.uint32)
    for new, old in _OLD_TYPES.items():
        new_type[old] = new
    channel = lhcb_id & np.uint32((1 << 28) - 1)
    return new_type[detector_type(lhcb_id)] << _DETECTOR_TYPE_SHIFT | channel


def without_orientation(lhcb_id: Ids) -> Ids:
    """The ids with the orientation bits cleared, so that ids of one pixel compare equal."""
    return lhcb_id & _ALL_BUT_ORIENTATION


@dataclass(frozen=True, slots=True, eq=False)
class UtChannel:
    """Positions of UT strips; all arrays u32[n].

    `side` 0 (x < 0) or 1; `layer` 0..3; `stave` 0..8 from the beam outwards; `face` 0 or 1; `module` 0..7 from the
    bottom; `sector` 0 or 1 if two sensors share a module; `strip` 0..511.
    """

    side: Ids
    layer: Ids
    stave: Ids
    face: Ids
    module: Ids
    sector: Ids
    strip: Ids


def ut_channel_id(channel: UtChannel) -> Ids:
    """The 28-bit channel ids of UT strips, as a board map lists them for strip 0."""
    ids = channel.side << np.uint32(_UT_SIDE_SHIFT) | np.uint32(_UT_STATION_TYPE)
    for name, (lowest, _) in _UT_FIELDS.items():
        ids = ids | getattr(channel, name) << np.uint32(lowest)
    return ids


def ut_lhcb_id(channel_id: Ids) -> Ids:
    """The LHCbIDs of UT channel ids."""
    return np.uint32(UT_TYPE << 28) | channel_id


def ut_channel(lhcb_id: Ids) -> UtChannel:
    """The strips of UT LHCbIDs or channel ids: the inverse of ut_channel_id."""
    fields = {
        name: lhcb_id >> np.uint32(lowest) & np.uint32((1 << bits) - 1) for name, (lowest, bits) in _UT_FIELDS.items()
    }
    return UtChannel(side=lhcb_id >> np.uint32(_UT_SIDE_SHIFT) & np.uint32(1), **fields)


@dataclass(frozen=True, slots=True, eq=False)
class SciFiChannel:
    """Positions of SciFi channels; all arrays u32[n] (docs/formats/lhcb-id.md).

    `station` 1..3; `layer` 0..3 (x, u, v, x); `quarter` 0..3 (0, 1 below, 2, 3 above the beam); `module` 0..5 from the
    beam outwards; `mat` 0..3; `sipm` 0..3; `channel` 0..127; 64 and above are in the second die.
    """

    station: Ids
    layer: Ids
    quarter: Ids
    module: Ids
    mat: Ids
    sipm: Ids
    channel: Ids


# Bits of a SciFi channel: field name -> (lowest bit, number of bits).
_SCIFI_FIELDS = {
    "channel": (0, 7),
    "sipm": (7, 2),
    "mat": (9, 2),
    "module": (11, 3),
    "quarter": (14, 2),
    "layer": (16, 2),
    "station": (18, 2),
}


def scifi_channel_id(channel: SciFiChannel) -> Ids:
    """The 28-bit channel ids of SciFi channels."""
    ids = np.zeros_like(channel.channel)
    for name, (lowest, _) in _SCIFI_FIELDS.items():
        ids |= getattr(channel, name) << np.uint32(lowest)
    return ids


def scifi_lhcb_id(channel_id: Ids) -> Ids:
    """The LHCbIDs of SciFi channel ids."""
    return np.uint32(FT_TYPE << 28) | channel_id


def scifi_channel(lhcb_id: Ids) -> SciFiChannel:
    """The channels of SciFi LHCbIDs or channel ids: the inverse of scifi_channel_id."""
    return SciFiChannel(
        **{
            name: lhcb_id >> np.uint32(lowest) & np.uint32((1 << bits) - 1)
            for name, (lowest, bits) in _SCIFI_FIELDS.items()
        }
    )
