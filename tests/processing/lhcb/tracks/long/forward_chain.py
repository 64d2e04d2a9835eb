"""Runs VELO, UT, SciFi and the forward search, from MFPs to long tracks, and returns the output event by event."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
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
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.raw_data.global_event_cut import global_event_cut
from hltnode.processing.lhcb.scifi.collections import ZONE_STRIDE, scifi_count, scifi_types
from hltnode.processing.lhcb.tracks.forward.prepare_candidates import prepare_candidates
from hltnode.processing.lhcb.tracks.forward.search_with_ut import search_with_ut
from hltnode.processing.lhcb.tracks.forward.search_without_ut import search_without_ut
from hltnode.processing.lhcb.tracks.forward.select_tracks import select_tracks as select_forward_tracks
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT, long_count, long_types
from hltnode.processing.lhcb.tracks.long.parameters import long_track_parameters, parameter_types, record_of
from hltnode.processing.lhcb.ut.collections import ut_types
from hltnode.protocol.lhcb.subdetectors import SubDetector
from tests.processing.lhcb.scifi.scifi_chain import SCIFI_ALGORITHMS, scifi_constants
from tests.processing.lhcb.ut.ut_chain import Detector, UtEvent, read_ut_event, ut_chain

FORWARD_ALGORITHMS = (prepare_candidates, search_with_ut, search_without_ut, select_forward_tracks)
SCIFI_COLUMNS = ("x", "z", "id")
LONG_COLUMNS = (
    "velo_track",
    "ut_track",
    "origin",
    "qop",
    "x",
    "y",
    "tx",
    "ty",
    "quality",
    "hit_count",
    "hits",
    "ut_hits",
)


@cache
def forward_chain() -> Chain:
    """The chain, with the kernels of LHCb."""
    before = ut_chain()
    fragments, *velo_and_ut = before.sequence
    return Chain(
        name="forward_chain",
        sequence=AlgorithmSequence((fragments, global_event_cut, *velo_and_ut, *SCIFI_ALGORITHMS, *FORWARD_ALGORITHMS)),
        kernels=CHAIN.kernels,
        source=CHAIN.source,
        readout=before.readout,
        subdetectors=before.subdetectors | {SubDetector.SCIFI_A, SubDetector.SCIFI_C},
        counts={"long_tracks": long_count, "scifi_hits": scifi_count},
        types=(*before.types, ut_types, scifi_types, long_types, parameter_types),
    )


def forward_constants(detector: Detector, scifi: SciFiGeometry) -> dict[str, NDArray[np.uint8]]:
    """The constant columns of the chain."""
    record = record_of(LongTrackParameters.builtin(), scifi)
    return {
        **detector.constants(),
        **scifi_constants(scifi),
        long_track_parameters.name: np.frombuffer(record, np.uint8),
    }


@dataclass(frozen=True, slots=True)
class ForwardEvent:
    """Output of the chain for one event: VELO and UT, SciFi hits, long tracks."""

    ut: UtEvent
    scifi: dict[str, NDArray[Any]]
    zone_offset: NDArray[np.uint16]
    tracks: dict[str, NDArray[Any]]

    def same_as(self, other: ForwardEvent) -> bool:
        """Whether the long tracks of both events are equal bit by bit."""
        return all(self.tracks[name].tobytes() == other.tracks[name].tobytes() for name in self.tracks)


class ForwardChain:
    """An engine with the chain and one workspace."""

    def __init__(
        self, constants: dict[str, NDArray[np.uint8]], limits: BatchLimits, chain: Chain | None = None
    ) -> None:
        chain = forward_chain() if chain is None else chain
        self.engine = Engine(CpuBackend(chain.kernels), chain, constants, limits, retain="all")
        self.workspace: Workspace = self.engine.create_workspace()

    def run(self, mep: EncodedMep) -> list[ForwardEvent]:
        """Run one MEP as a batch."""
        workspace = self.workspace
        workspace.input_data[: mep.data.nbytes] = mep.data
        workspace.seal([MepInBatch(mep.n_events, mep.fragments)])
        workspace.submit()
        workspace.wait()
        return [self._event(event) for event in range(workspace.n_events)]

    def _event(self, event: int) -> ForwardEvent:
        fetch = self.workspace.fetch
        first = int(fetch("scifi_hits.offset")[event])
        last = first + int(self.workspace.host_array("scifi_hits.count")[event])
        begin = event * MAX_TRACKS_PER_EVENT
        tracks = slice(begin, begin + int(self.workspace.host_array("long_tracks.count")[event]))
        return ForwardEvent(
            ut=read_ut_event(self.workspace, event),
            scifi={name: fetch(f"scifi_hits.{name}")[first:last] for name in SCIFI_COLUMNS},
            zone_offset=fetch("scifi_hits.zone_offset").reshape(-1, ZONE_STRIDE)[event],
            tracks={name: fetch(f"long_tracks.{name}")[tracks] for name in LONG_COLUMNS[:-2]}
            | {
                "hits": fetch("long_tracks.hits").reshape(-1, 12)[tracks],
                "ut_hits": fetch("long_tracks.ut_hits").reshape(-1, 4)[tracks],
            },
        )
