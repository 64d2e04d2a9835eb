"""Hits of groups of channels of LHCb in data: VELO ASICs, SciFi SiPMs, UT lanes, cells of the calorimeter."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.engine import Workspace
from hltnode.processing.lhcb.calorimeter.collections import ecal_adc, ecal_geometry
from hltnode.processing.lhcb.conditions import FIRST_SIPM
from hltnode.processing.lhcb.geometry.ideal_ecal import N_CELLS, NO_CELL
from hltnode.processing.lhcb.geometry.ideal_scifi import CHANNELS_PER_SIPM, LAYERS_PER_STATION, N_LAYERS, SIPMS_PER_MAT
from hltnode.processing.lhcb.geometry.ideal_ut import N_SECTORS
from hltnode.processing.lhcb.geometry.ideal_velo import CHIPS_PER_SENSOR, N_SENSORS, SENSORS_PER_MODULE
from hltnode.processing.lhcb.geometry.scifi_mats import NO_PLACE
from hltnode.processing.lhcb.geometry.ut_groups import NO_SECTOR
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_hit_offset, scifi_id, scifi_mats
from hltnode.processing.lhcb.ut.collections import ut_count, ut_geometry, ut_hit_offset, ut_id
from hltnode.processing.lhcb.velo.collections import cluster_count, cluster_offset, hit_id
from hltnode.processing.offline.channel_groups import ChannelGroups
from hltnode.processing.selection.trigger_chain import Constants

_MIN_ADC = 30
"""ADC counts of a cell with a hit; the noise is below 10."""
_HITS: Mapping[str, tuple[Column, Column, Column]] = {
    "VELO ASIC": (cluster_offset, cluster_count, hit_id),
    "SciFi SiPM": (scifi_hit_offset, scifi_count, scifi_id),
    "UT lane": (ut_hit_offset, ut_count, ut_id),
}
_ECAL = "ECAL cell"


@dataclass(frozen=True, slots=True)
class LhcbChannels:
    """Counts hits by group. Masks of muon tiles are not compared: most tiles have no hit in thousands of events."""

    def columns(self, sequence: AlgorithmSequence) -> tuple[str, ...]:
        """The columns that `count` fetches, of the detectors that a sequence reads."""
        made = {column for algorithm in sequence for column in algorithm.writes}
        found = [column.name for columns in _HITS.values() if columns[2] in made for column in columns]
        return (*found, *([ecal_adc.name] if ecal_adc in made else []))

    def groups(self, constants: Constants) -> tuple[ChannelGroups, ...]:
        """The groups of a detector, of those parts that it has."""
        made = [_velo()]
        if scifi_mats.name in constants:
            made.append(_scifi(constants[scifi_mats.name].view(scifi_mats.dtype)))
        if ut_geometry.name in constants:
            made.append(_ut(constants[ut_geometry.name].view(ut_geometry.dtype)[0]))
        if ecal_geometry.name in constants:
            made.append(_ecal(constants[ecal_geometry.name].view(ecal_geometry.dtype)[0]))
        return tuple(made)

    def count(self, groups: ChannelGroups, constants: Constants, workspace: Workspace) -> NDArray[np.int64]:
        """The hits of a batch in each group, i64[n]."""
        if groups.name == _ECAL:
            adc = workspace.fetch(ecal_adc.name, workspace.n_events * N_CELLS).reshape(-1, N_CELLS)
            hits: NDArray[np.int64] = (adc >= _MIN_ADC).sum(axis=0, dtype=np.int64)
            return hits
        offset, count, ids = (column.name for column in _HITS[groups.name])
        offsets = workspace.fetch(offset, workspace.n_events + 1).astype(np.int64)
        counts = workspace.fetch(count, workspace.n_events).astype(np.int64)
        place = np.arange(int(counts.sum())) + np.repeat(offsets[:-1] - (np.cumsum(counts) - counts), counts)
        found = workspace.fetch(ids, int(offsets[-1]))[place]
        return np.bincount(_index(groups.name, found, constants), minlength=len(groups.numbers)).astype(np.int64)


def _index(name: str, ids: NDArray[np.uint32], constants: Constants) -> NDArray[np.int64]:
    """The group of each LHCbID."""
    channel = (ids & np.uint32(0xFFF_FFFF)).astype(np.int64)
    if name == "VELO ASIC":
        asic: NDArray[np.int64] = CHIPS_PER_SENSOR * (channel >> 18 & 0xFF) + (channel >> 16 & 3)
        return asic
    if name == "SciFi SiPM":
        return channel // CHANNELS_PER_SIPM - FIRST_SIPM
    geometry = constants[ut_geometry.name].view(ut_geometry.dtype)[0]
    first = geometry["channel"].astype(np.int64) >> 9
    order = np.argsort(first)
    sector: NDArray[np.int64] = order[np.searchsorted(first[order], ids.astype(np.int64) >> 9)]
    return _lane_of_sector(geometry)[sector]


def _velo() -> ChannelGroups:
    """An ASIC has the same place in the modules before and behind it on its side."""
    n, of_side = CHIPS_PER_SENSOR * N_SENSORS, 2 * SENSORS_PER_MODULE * CHIPS_PER_SENSOR
    index = np.arange(n)[:, None] + of_side * np.array([-2, -1, 1, 2])
    neighbours = np.where((index >= 0) & (index < n), index, -1)
    return ChannelGroups(
        name="VELO ASIC",
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
        name="SciFi SiPM",
        condition="masked_scifi_sipms",
        numbers=number + FIRST_SIPM,
        exists=exists,
        neighbours=np.stack(others + beside, axis=1),
    )


def _lane_of_sector(geometry: np.void) -> NDArray[np.int64]:
    """The lane that reads each sector, i64[1048]."""
    lanes = np.flatnonzero(geometry["sector_of_lane"] != NO_SECTOR)
    found = np.zeros(N_SECTORS, np.int64)
    found[geometry["sector_of_lane"][lanes]] = lanes
    return found


def _ut(geometry: np.void) -> ChannelGroups:
    """Sectors are in the order of columns and of y: those before and behind are above and below."""
    lanes = _lane_of_sector(geometry)
    n = len(geometry["sector_of_lane"])
    neighbours = np.full((n, 4), -1)
    sector = np.arange(N_SECTORS)[:, None] + np.array([-2, -1, 1, 2])
    inside = (sector >= 0) & (sector < N_SECTORS)
    neighbours[lanes] = np.where(inside, lanes[np.clip(sector, 0, N_SECTORS - 1)], -1)
    exists = np.zeros(n, np.bool_)
    exists[lanes] = True
    return ChannelGroups(
        name="UT lane", condition="masked_ut_lanes", numbers=np.arange(n), exists=exists, neighbours=neighbours
    )


def _ecal(geometry: np.void) -> ChannelGroups:
    given = geometry["neighbours"].astype(np.int64)
    read_out = np.zeros(N_CELLS, np.bool_)
    channels = geometry["cell_of_channel"]
    read_out[channels[channels != NO_CELL]] = True
    return ChannelGroups(
        name=_ECAL,
        condition="masked_ecal_cells",
        numbers=np.arange(N_CELLS),
        exists=read_out,
        neighbours=np.where(given == NO_CELL, -1, given),
    )
