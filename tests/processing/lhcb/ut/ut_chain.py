"""Runs the VELO chain and then the UT, from MFPs to VELO-UT tracks, and returns the output event by event."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.chain import CHAIN, HLT1_SEQUENCE
from hltnode.processing.lhcb.geometry.ideal_ut import N_LAYERS
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.ut import UtGeometry
from hltnode.processing.lhcb.geometry.ut_groups import UtSectorGroups
from hltnode.processing.lhcb.geometry.ut_tables import UtTables
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.ut.collections import (
    GROUP_STRIDE,
    MAX_TRACKS_PER_EVENT,
    SECTOR_STRIDE,
    ut_count,
    ut_track_count,
    ut_types,
)
from hltnode.processing.lhcb.ut.decode_banks import decode_banks
from hltnode.processing.lhcb.ut.estimate_input_size import estimate_input_size
from hltnode.processing.lhcb.ut.hit_offsets import hit_offsets
from hltnode.processing.lhcb.ut.search_tracks import search_tracks
from hltnode.processing.lhcb.ut.select_tracks import select_tracks
from hltnode.processing.lhcb.velo.collections import MAX_HITS_PER_TRACK
from hltnode.protocol.lhcb.subdetectors import SubDetector

UT_ALGORITHMS = (estimate_input_size, hit_offsets, decode_banks, search_tracks, select_tracks)
UP_TO_TRACKS = tuple(HLT1_SEQUENCE)[: [a.name for a in HLT1_SEQUENCE].index("velo_kalman_filter") + 1]
VELO_ALGORITHMS = tuple(algorithm for algorithm in UP_TO_TRACKS if algorithm.name != "missing_detectors")
"""Many of the events have only UT banks."""


@cache
def ut_chain() -> Chain:
    """The chain, with the kernels of LHCb."""
    return Chain(
        name="ut_chain",
        sequence=AlgorithmSequence((*VELO_ALGORITHMS, *UT_ALGORITHMS)),
        kernels=CHAIN.kernels,
        source=CHAIN.source,
        readout=CHAIN.readout,
        subdetectors=CHAIN.sequences["velo"].subdetectors | {SubDetector.UT_A, SubDetector.UT_C},
        counts={"ut_hits": ut_count, "ut_tracks": ut_track_count},
        types=(*CHAIN.types, ut_types),
    )


@dataclass(frozen=True, slots=True)
class Detector:
    """Source of the constants of the chain."""

    velo: VeloGeometry
    ut: UtGeometry
    tables: UtTables
    polarity: float

    @classmethod
    def builtin(cls) -> Detector:
        """The ideal detector."""
        return cls(VeloGeometry.builtin(), UtGeometry.builtin(), UtTables.builtin(), Magnet.builtin().polarity)

    @classmethod
    def load(cls, directory: Path) -> Detector:
        """The detector of a folder of geometry files."""
        polarity = Magnet.load(directory).polarity
        return cls(VeloGeometry.load(directory), UtGeometry.load(directory), UtTables.load(directory), polarity)

    def constants(self) -> dict[str, NDArray[np.uint8]]:
        """The constant columns of the chain."""
        content = {
            "velo_geometry": self.velo.to_bytes(),
            "ut_geometry": UtSectorGroups.of(self.ut).to_bytes(),
            "ut_tables": self.tables.to_bytes(self.polarity),
        }
        return {name: np.frombuffer(data, dtype=np.uint8) for name, data in content.items()}


TRACK_COLUMNS = ("velo_track", "qop", "x", "z", "tx", "hit_count", "hits")
HIT_COLUMNS = ("x", "z", "y_begin", "y_end", "weight", "id")


@dataclass(frozen=True, slots=True)
class VeloTracks:
    """The VELO tracks of an event: states at z = 770 mm, whether they fly backward, LHCbIDs of each."""

    states: dict[str, NDArray[np.float32]]
    backward: NDArray[np.uint8]
    ids: list[NDArray[np.uint32]]


@dataclass(frozen=True, slots=True)
class UtEvent:
    """Output of the chain for one event: UT hits in order, offsets of groups and sectors, VELO-UT tracks, and the VELO
    tracks that they continue."""

    flags: int
    hits: dict[str, NDArray[Any]]
    group_offset: NDArray[np.uint16]
    sector_offset: NDArray[np.uint16]
    tracks: dict[str, NDArray[Any]]
    velo: VeloTracks

    def same_as(self, other: UtEvent) -> bool:
        """Whether both events are equal bit by bit."""
        return (
            self.flags == other.flags
            and all(self.hits[name].tobytes() == other.hits[name].tobytes() for name in HIT_COLUMNS)
            and self.group_offset.tobytes() == other.group_offset.tobytes()
            and self.sector_offset.tobytes() == other.sector_offset.tobytes()
            and all(self.tracks[name].tobytes() == other.tracks[name].tobytes() for name in TRACK_COLUMNS)
        )


class UtChain:
    """An engine with the chain and one workspace."""

    def __init__(self, detector: Detector, limits: BatchLimits, chain: Chain | None = None) -> None:
        chain = ut_chain() if chain is None else chain
        self.engine = Engine(CpuBackend(chain.kernels), chain, detector.constants(), limits, retain="all")
        self.workspace: Workspace = self.engine.create_workspace()

    def run(self, mep: EncodedMep) -> list[UtEvent]:
        """Run one MEP as a batch."""
        workspace = self.workspace
        workspace.input_data[: mep.data.nbytes] = mep.data
        workspace.seal([MepInBatch(mep.n_events, mep.fragments)])
        workspace.submit()
        workspace.wait()
        return [read_ut_event(workspace, event) for event in range(workspace.n_events)]


def _read_velo_tracks(workspace: Workspace, event: int) -> VeloTracks:
    fetch = workspace.fetch
    first_cluster = int(fetch("velo_clusters.offset")[event])
    first = first_cluster // 2
    last = first + int(workspace.host_array("velo_tracks.count")[event])
    hits = fetch("velo_tracks.hits").reshape(-1, MAX_HITS_PER_TRACK)[first:last]
    counts = fetch("velo_tracks.hit_count")[first:last]
    ids = fetch("velo_hits.id")[first_cluster:]
    return VeloTracks(
        states={name: fetch(f"velo_end.{name}")[first:last] for name in ("x", "y", "tx", "ty")},
        backward=fetch("velo_tracks.backward")[first:last],
        ids=[ids[track[:n]] for track, n in zip(hits, counts, strict=True)],
    )


def read_ut_event(workspace: Workspace, event: int) -> UtEvent:
    """Output of a chain with the UT for one event of its last batch."""
    fetch = workspace.fetch
    tracks = slice(
        event * MAX_TRACKS_PER_EVENT,
        event * MAX_TRACKS_PER_EVENT + int(workspace.host_array("ut_tracks.count")[event]),
    )
    first = int(fetch("ut_hits.offset")[event])
    last = first + int(workspace.host_array("ut_hits.count")[event])
    return UtEvent(
        flags=int(workspace.host_array("events.flags")[event]),
        hits={name: fetch(f"ut_hits.{name}")[first:last] for name in HIT_COLUMNS},
        group_offset=fetch("ut_hits.group_offset").reshape(-1, GROUP_STRIDE)[event],
        sector_offset=fetch("ut_hits.sector_offset").reshape(-1, SECTOR_STRIDE)[event],
        tracks={name: fetch(f"ut_tracks.{name}")[tracks] for name in TRACK_COLUMNS if name != "hits"}
        | {"hits": fetch("ut_tracks.hits").reshape(-1, N_LAYERS)[tracks]},
        velo=_read_velo_tracks(workspace, event),
    )


def limits_of(mep: EncodedMep) -> BatchLimits:
    """A batch with only this MEP, with room for the maximum number of hits in its bytes."""
    return BatchLimits(events=mep.n_events, meps=1, input_bytes=8 * mep.data.nbytes + 4096, rows=len(mep.fragments))
