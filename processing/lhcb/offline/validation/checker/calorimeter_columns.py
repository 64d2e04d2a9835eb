"""Clusters and long tracks as the calorimeter sees them, copied back from the device."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.calorimeter import collections as ecal
from hltnode.processing.lhcb.geometry.ideal_ecal import FIRST_CELLS, MODULE_SIZE, SHOWER_MAXIMUM_Z
from hltnode.processing.lhcb.tracks.long.collections import Z_END_SCIFI, long_state
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.workspace_columns import Objects

CLUSTER_COLUMNS = (
    ecal.cluster_count,
    ecal.cluster_seed,
    *ecal.cluster_position.values(),
    ecal.cluster_energy,
    ecal.cluster_et,
)
ELECTRON_COLUMNS = (
    *(ecal.long_in_ecal, ecal.long_is_electron, ecal.long_electron_nn, ecal.long_brem_energy),
    *long_state.values(),
)


@dataclass(frozen=True, slots=True, eq=False)
class EcalTracks:
    """Of long tracks: whether they cross the calorimeter, whether they are electrons by E/p, response of the electron
    network, energy of their bremsstrahlung (MeV), place where they cross it (mm), f64[n, 2]."""

    in_ecal: Mask
    is_electron: Mask
    electron_nn: Float64Array
    brem_energy: Float64Array
    place: Float64Array

    @classmethod
    def read(cls, of: Objects) -> Self:
        """From the long tracks of a batch."""
        x, y, tx, ty = (of(long_state[name]).astype(np.float64) for name in ("x", "y", "tx", "ty"))
        dz = SHOWER_MAXIMUM_Z - Z_END_SCIFI
        return cls(
            in_ecal=of(ecal.long_in_ecal) != 0,
            is_electron=of(ecal.long_is_electron) != 0,
            electron_nn=of(ecal.long_electron_nn).astype(np.float64),
            brem_energy=of(ecal.long_brem_energy).astype(np.float64),
            place=np.stack([x + dz * tx, y + dz * ty], axis=1),
        )

    def take(self, rows: Mask) -> Self:
        """The chosen tracks."""
        return type(self)(
            self.in_ecal[rows],
            self.is_electron[rows],
            self.electron_nn[rows],
            self.brem_energy[rows],
            self.place[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class ClusterTable:
    """Clusters of a batch, one row each: `event`, `place` f64[n, 2] (mm), `energy`, `et` (MeV), and the `width` of the
    cell of the seed (mm)."""

    event: Int64Array
    place: Float64Array
    energy: Float64Array
    et: Float64Array
    width: Float64Array

    @classmethod
    def read(cls, workspace: Workspace) -> Self:
        """From a batch that has run."""
        of = Objects(workspace, ecal.ecal_clusters, ecal.cluster_count)
        region = np.searchsorted(FIRST_CELLS[1:], of(ecal.cluster_seed), side="right")
        return cls(
            event=of.event,
            place=np.stack([of(ecal.cluster_position[axis]).astype(np.float64) for axis in "xy"], axis=1),
            energy=of(ecal.cluster_energy).astype(np.float64),
            et=of(ecal.cluster_et).astype(np.float64),
            width=MODULE_SIZE / (1.0 + region.astype(np.float64)),
        )

    def of_kept_events(self, kept: Mask) -> Self:
        """The clusters of the events that are kept (bool[events]), which are numbered anew."""
        event = np.where(kept, np.cumsum(kept) - 1, -1)[self.event]
        rows = event >= 0
        return type(self)(event[rows], self.place[rows], self.energy[rows], self.et[rows], self.width[rows])


def has_calorimeter(sequence: AlgorithmSequence) -> bool:
    """Whether a sequence makes clusters and electrons."""
    return set(CLUSTER_COLUMNS) | set(ELECTRON_COLUMNS) <= set(sequence.columns)
