"""Hits of groups of channels of LHCb in data: VELO ASICs, SciFi SiPMs, UT lanes, cells of the calorimeter."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.channel_groups import ChannelGroups
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.calorimeter.collections import ecal_adc
from hltnode.processing.lhcb.channels import (
    ECAL_CELL,
    SCIFI_SIPM,
    UT_LANE,
    VELO_ASIC,
    channel_groups,
    lane_of_sector,
)
from hltnode.processing.lhcb.conditions import FIRST_SIPM
from hltnode.processing.lhcb.geometry.ideal_ecal import N_CELLS
from hltnode.processing.lhcb.geometry.ideal_scifi import CHANNELS_PER_SIPM
from hltnode.processing.lhcb.geometry.ideal_velo import CHIPS_PER_SENSOR
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_hit_offset, scifi_id
from hltnode.processing.lhcb.ut.collections import ut_count, ut_geometry, ut_hit_offset, ut_id
from hltnode.processing.lhcb.velo.collections import cluster_count, cluster_offset, hit_id
from hltnode.processing.selection.trigger_chain import Constants

_MIN_ADC = 30
"""ADC counts of a cell with a hit; the noise is below 10."""
_HITS: Mapping[str, tuple[Column, Column, Column]] = {
    VELO_ASIC: (cluster_offset, cluster_count, hit_id),
    SCIFI_SIPM: (scifi_hit_offset, scifi_count, scifi_id),
    UT_LANE: (ut_hit_offset, ut_count, ut_id),
}


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
        return channel_groups(constants)

    def count(self, groups: ChannelGroups, constants: Constants, workspace: Workspace) -> NDArray[np.int64]:
        """The hits of a batch in each group, i64[n]."""
        if groups.name == ECAL_CELL:
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
    if name == VELO_ASIC:
        asic: NDArray[np.int64] = CHIPS_PER_SENSOR * (channel >> 18 & 0xFF) + (channel >> 16 & 3)
        return asic
    if name == SCIFI_SIPM:
        return channel // CHANNELS_PER_SIPM - FIRST_SIPM
    geometry = constants[ut_geometry.name].view(ut_geometry.dtype)[0]
    first = geometry["channel"].astype(np.int64) >> 9
    order = np.argsort(first)
    sector: NDArray[np.int64] = order[np.searchsorted(first[order], ids.astype(np.int64) >> 9)]
    return lane_of_sector(geometry)[sector]
