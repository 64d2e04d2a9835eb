"""Groups of channels of LHCb whose hits are compared: VELO ASICs, SciFi SiPMs, UT lanes, cells of the calorimeter."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.channel_groups import ChannelGroups, CountedChannels
from hltnode.processing.lhcb.calorimeter.collections import ecal_geometry
from hltnode.processing.lhcb.conditions import FIRST_SIPM
from hltnode.processing.lhcb.geometry.ideal_ecal import N_CELLS, NO_CELL
from hltnode.processing.lhcb.geometry.ideal_scifi import CHANNELS_PER_SIPM, LAYERS_PER_STATION, N_LAYERS, SIPMS_PER_MAT
from hltnode.processing.lhcb.geometry.ideal_ut import N_SECTORS
from hltnode.processing.lhcb.geometry.ideal_velo import CHIPS_PER_SENSOR, N_SENSORS, SENSORS_PER_MODULE
from hltnode.processing.lhcb.geometry.scifi_mats import NO_PLACE
from hltnode.processing.lhcb.geometry.ut_groups import NO_SECTOR
from hltnode.processing.lhcb.lines.histograms import (
    CHANNEL_BITS,
    FIRST_UT_SECTOR,
    N_UT_SECTORS,
    SCIFI_SIPMS,
    UT_SECTOR_STEP,
    UT_SECTORS,
    VELO_ASICS,
)
from hltnode.processing.lhcb.scifi.collections import scifi_mats, scifi_read_out
from hltnode.processing.lhcb.ut.collections import ut_geometry
from hltnode.processing.lhcb.velo.collections import velo_geometry

Constants = Mapping[str, NDArray[np.uint8]]
VELO_ASIC, SCIFI_SIPM, UT_LANE, ECAL_CELL = "VELO ASIC", "SciFi SiPM", "UT lane", "ECAL cell"


def channel_groups(constants: Constants) -> tuple[ChannelGroups, ...]:
    """The groups of a detector, of those parts that it has."""
    made = [_velo()]
    if scifi_mats.name in constants:
        made.append(_scifi(constants[scifi_mats.name].view(scifi_mats.dtype)))
    if ut_geometry.name in constants:
        made.append(_ut(constants[ut_geometry.name].view(ut_geometry.dtype)[0]))
    if ecal_geometry.name in constants:
        made.append(_ecal(constants[ecal_geometry.name].view(ecal_geometry.dtype)[0]))
    return tuple(made)


def counted_channels(constants: Constants) -> tuple[CountedChannels, ...]:
    """The groups whose hits monitoring histograms count. Cells of the calorimeter have no histogram."""
    made = []
    for groups in channel_groups(constants):
        number = np.arange(len(groups.numbers))
        if groups.name == VELO_ASIC:
            asics = 4 * (number // CHIPS_PER_SENSOR) + number % CHIPS_PER_SENSOR
            masked = _bits(constants[velo_geometry.name].view(velo_geometry.dtype)["masked_asics"][0])[asics]
            made.append(CountedChannels(groups=groups, histogram=VELO_ASICS, group_of_bin=number, masked=masked))
        elif groups.name == SCIFI_SIPM:
            bits = _bits(constants[scifi_read_out.name].view(scifi_read_out.dtype)["masked"][0])
            of_sipm = bits[: len(number) * CHANNELS_PER_SIPM].reshape(-1, CHANNELS_PER_SIPM)
            masked = np.logical_and.reduce(of_sipm, axis=1)
            made.append(CountedChannels(groups=groups, histogram=SCIFI_SIPMS, group_of_bin=number, masked=masked))
        elif groups.name == UT_LANE:
            geometry = constants[ut_geometry.name].view(ut_geometry.dtype)[0]
            sectors = (geometry["channel"] & CHANNEL_BITS).astype(np.int64) // UT_SECTOR_STEP
            of_bin = np.full(N_UT_SECTORS, -1)
            of_bin[sectors - FIRST_UT_SECTOR] = lane_of_sector(geometry)
            # A masked lane reads no sector, so it does not exist.
            none = np.zeros(len(number), np.bool_)
            made.append(CountedChannels(groups=groups, histogram=UT_SECTORS, group_of_bin=of_bin, masked=none))
    return tuple(made)


def _bits(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    return np.unpackbits(words.view(np.uint8), bitorder="little").view(np.bool_)


def _velo() -> ChannelGroups:
    """An ASIC has the same place in the modules before and behind it on its side."""
    n, of_side = CHIPS_PER_SENSOR * N_SENSORS, 2 * SENSORS_PER_MODULE * CHIPS_PER_SENSOR
    index = np.arange(n)[:, None] + of_side * np.array([-2, -1, 1, 2])
    neighbours = np.where((index >= 0) & (index < n), index, -1)
    return ChannelGroups(
        name=VELO_ASIC,
        condition="masked_velo_asics",
        numbers=np.arange(n),
        exists=np.ones(n, np.bool_),
        neighbours=neighbours,
    )


def _scifi(mats: NDArray[np.void]) -> ChannelGroups:
    """A SiPM has the same number in the other layers of its station, and SiPMs beside it in its own."""
    n = len(mats) * SIPMS_PER_MAT
    exists = np.repeat(mats["place"] != NO_PLACE, SIPMS_PER_MAT)
    of_layer = n // N_LAYERS
    number = np.arange(n)
    layer = number // of_layer % LAYERS_PER_STATION
    others = [number + of_layer * ((layer + k) % LAYERS_PER_STATION - layer) for k in (1, 2, 3)]
    beside = [np.clip(number + k, 0, n - 1) for k in (-2, -1, 1, 2)]
    return ChannelGroups(
        name=SCIFI_SIPM,
        condition="masked_scifi_sipms",
        numbers=number + FIRST_SIPM,
        exists=exists,
        neighbours=np.stack(others + beside, axis=1),
    )


def lane_of_sector(geometry: np.void) -> NDArray[np.int64]:
    """The lane that reads each sector, i64[1048]."""
    lanes = np.flatnonzero(geometry["sector_of_lane"] != NO_SECTOR)
    found = np.zeros(N_SECTORS, np.int64)
    found[geometry["sector_of_lane"][lanes]] = lanes
    return found


def _ut(geometry: np.void) -> ChannelGroups:
    """Sectors are in the order of columns and of y: those before and behind are above and below."""
    lanes = lane_of_sector(geometry)
    n = len(geometry["sector_of_lane"])
    neighbours = np.full((n, 4), -1)
    sector = np.arange(N_SECTORS)[:, None] + np.array([-2, -1, 1, 2])
    inside = (sector >= 0) & (sector < N_SECTORS)
    neighbours[lanes] = np.where(inside, lanes[np.clip(sector, 0, N_SECTORS - 1)], -1)
    exists = np.zeros(n, np.bool_)
    exists[lanes] = True
    return ChannelGroups(
        name=UT_LANE, condition="masked_ut_lanes", numbers=np.arange(n), exists=exists, neighbours=neighbours
    )


def _ecal(geometry: np.void) -> ChannelGroups:
    given = geometry["neighbours"].astype(np.int64)
    read_out = np.zeros(N_CELLS, np.bool_)
    channels = geometry["cell_of_channel"]
    read_out[channels[channels != NO_CELL]] = True
    return ChannelGroups(
        name=ECAL_CELL,
        condition="masked_ecal_cells",
        numbers=np.arange(N_CELLS),
        exists=read_out,
        neighbours=np.where(given == NO_CELL, -1, given),
    )
