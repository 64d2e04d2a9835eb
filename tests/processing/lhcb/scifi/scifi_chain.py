"""Runs the SciFi part of HLT1, from MFPs to sorted hits, and returns its output event by event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.geometry.scifi_mats import mat_table, read_out_table, sipm_table
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.primary_vertices.collections import pv_types
from hltnode.processing.lhcb.raw_data.global_event_cut import global_event_cut
from hltnode.processing.lhcb.raw_data.raw_data_types import raw_data_types
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.processing.lhcb.scifi.collections import (
    ZONE_STRIDE,
    scifi_count,
    scifi_mats,
    scifi_read_out,
    scifi_sipms,
    scifi_types,
)
from hltnode.processing.lhcb.scifi.decode_clusters import decode_clusters
from hltnode.processing.lhcb.scifi.hit_offsets import hit_offsets
from hltnode.processing.lhcb.velo.collections import velo_geometry, velo_types
from hltnode.processing.selection.lines.line import selection_types
from hltnode.protocol.lhcb.subdetectors import SubDetector
from tests.processing.lhcb.velo.velo_chain import ALGORITHMS as VELO_ALGORITHMS

SCIFI_ALGORITHMS = (hit_offsets, decode_clusters)
READ = {SubDetector.ODIN, SubDetector.VELO_A, SubDetector.VELO_C, SubDetector.UT_A, SubDetector.UT_C}
READ |= {SubDetector.SCIFI_A, SubDetector.SCIFI_C}
FETCHED = tuple(f"scifi_hits.{name}" for name in ("offset", "zone_offset", "x", "z", "id", "info"))
FREE_PLACES = 80
"""Places for each event, in addition to one per word."""
BYTES_PER_PLACE = 4
NO_LIMIT = 2**32 - 1


@cache
def scifi_chain(*, with_velo: bool = False) -> Chain:
    """Fragments, global event cut and SciFi, on request with VELO tracks, with the kernels of LHCb."""
    fragments, *velo = VELO_ALGORITHMS
    assert fragments is fragment_offsets
    return Chain(
        name="scifi",
        sequence=AlgorithmSequence((fragments, global_event_cut, *(velo if with_velo else ()), *SCIFI_ALGORITHMS)),
        kernels=CHAIN.kernels,
        source=CHAIN.source,
        readout=LHCB_READOUT,
        subdetectors=frozenset(READ),
        counts={"scifi_hits": scifi_count},
        types=(raw_data_types, velo_types, pv_types, selection_types, scifi_types),
    )


def with_constants(chain: Chain, **constants: Mapping[str, float | int]) -> Chain:
    """The chain with other constants of some algorithms, by their names."""
    algorithms = [
        algorithm.with_constants(constants[algorithm.name]) if algorithm.name in constants else algorithm
        for algorithm in chain.sequence
    ]
    return replace(chain, sequence=AlgorithmSequence(tuple(algorithms)))


@cache
def uncut_chain() -> Chain:
    """The SciFi chain with a global event cut that rejects no event."""
    limits = {"max_ut_clusters": NO_LIMIT, "max_scifi_clusters": NO_LIMIT, "max_clusters": NO_LIMIT}
    return with_constants(scifi_chain(), global_event_cut=limits)


def scifi_constants(geometry: SciFiGeometry) -> dict[str, NDArray[np.uint8]]:
    return {
        scifi_mats.name: mat_table(geometry).view(np.uint8),
        scifi_read_out.name: read_out_table(geometry).view(np.uint8),
        scifi_sipms.name: sipm_table(geometry).view(np.uint8),
    }


@dataclass(frozen=True, slots=True)
class SciFiEvent:
    """Output of the chain for one event: hits in sorted order, event flags."""

    flags: int
    zone_offset: NDArray[np.uint16]
    x: NDArray[np.float32]
    z: NDArray[np.float32]
    ids: NDArray[np.uint32]
    info: NDArray[np.uint16]

    def mat(self) -> NDArray[np.uint16]:
        return self.info & np.uint16(0x7FF)

    def pseudo_size(self) -> NDArray[np.uint16]:
        return self.info >> np.uint16(11)

    def zone(self) -> NDArray[np.int64]:
        """The zone of each hit, from the offsets."""
        return np.searchsorted(self.zone_offset[1:25], np.arange(len(self.ids)), side="right")

    def same_as(self, other: SciFiEvent) -> bool:
        """Whether both events are equal bit by bit."""
        arrays = ("zone_offset", "x", "z", "ids", "info")
        return self.flags == other.flags and all(
            getattr(self, name).tobytes() == getattr(other, name).tobytes() for name in arrays
        )


class SciFiChain:
    """An engine with one workspace."""

    def __init__(
        self, geometry: SciFiGeometry, limits: BatchLimits, chain: Chain | None = None, retain: Sequence[str] = ()
    ) -> None:
        chain = chain or uncut_chain()
        constants = scifi_constants(geometry)
        constants[velo_geometry.name] = np.frombuffer(VeloGeometry.builtin().to_bytes(), dtype=np.uint8)
        backend = CpuBackend(chain.kernels)
        self.workspace: Workspace = Engine(
            backend, chain, constants, limits, retain=(*FETCHED, *retain)
        ).create_workspace()

    def run(self, mep: EncodedMep) -> list[SciFiEvent]:
        """Run one MEP as a batch."""
        workspace = self.workspace
        workspace.input_data[: mep.data.nbytes] = mep.data
        workspace.seal([MepInBatch(mep.n_events, mep.fragments)])
        workspace.submit()
        workspace.wait()
        return [self._event(event) for event in range(workspace.n_events)]

    def _event(self, event: int) -> SciFiEvent:
        workspace = self.workspace
        first = int(workspace.fetch("scifi_hits.offset")[event])
        last = first + int(workspace.host_array("scifi_hits.count")[event])
        return SciFiEvent(
            flags=int(workspace.host_array("events.flags")[event]),
            zone_offset=workspace.fetch("scifi_hits.zone_offset").reshape(-1, ZONE_STRIDE)[event],
            x=workspace.fetch("scifi_hits.x")[first:last],
            z=workspace.fetch("scifi_hits.z")[first:last],
            ids=workspace.fetch("scifi_hits.id")[first:last],
            info=workspace.fetch("scifi_hits.info")[first:last],
        )


def limits_of(mep: EncodedMep) -> BatchLimits:
    """A batch with only this MEP, with room for the free places behind each event."""
    room = BYTES_PER_PLACE * FREE_PLACES * mep.n_events
    return BatchLimits(
        events=mep.n_events, meps=1, input_bytes=2 * mep.data.nbytes + room, rows=max(len(mep.fragments), 1)
    )


def run_scifi(mep: EncodedMep, geometry: SciFiGeometry, chain: Chain | None = None) -> list[SciFiEvent]:
    """Run one MEP through the chain, without the global event cut if none is given."""
    return SciFiChain(geometry, limits_of(mep), chain or uncut_chain()).run(mep)
