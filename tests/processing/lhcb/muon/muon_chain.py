"""The muon algorithms as a separate chain, and the run of one batch from MFPs and given long tracks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.batch import (
    BATCH_HEADER,
    EVENT_ROW,
    MFP_ROW,
    N_SUBDETECTORS,
    ROW_RANGE,
    BatchTables,
    MepInBatch,
)
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.framework.offline_runner import encode_mep as encode
from hltnode.processing.lhcb.calorimeter.collections import long_ecal_energy
from hltnode.processing.lhcb.geometry.muon import N_STATIONS, MuonGeometry
from hltnode.processing.lhcb.geometry.muon_cells import MuonCells
from hltnode.processing.lhcb.geometry.muon_fields import FieldsOfInterest
from hltnode.processing.lhcb.muon.collections import (
    FEATURES,
    FIELD_OF_INTEREST,
    MUON_GEOMETRY,
    STATION_STRIDE,
    STUB_NUMBERS,
    muon_types,
)
from hltnode.processing.lhcb.muon.correlated_chi2 import correlated_chi2
from hltnode.processing.lhcb.muon.cross_strips import cross_strips
from hltnode.processing.lhcb.muon.find_cells import find_cells
from hltnode.processing.lhcb.muon.hit_offsets import hit_offsets
from hltnode.processing.lhcb.muon.identify_tracks import identify_tracks
from hltnode.processing.lhcb.muon.is_muon import is_muon
from hltnode.processing.lhcb.muon.measure_tracks import measure_tracks
from hltnode.processing.lhcb.muon.muon_network import MUON_NETWORK, MuonNetwork, muon_network_types
from hltnode.processing.lhcb.raw_data.raw_data_types import raw_data_types
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.processing.lhcb.tracks.kalman.collections import long_beam_state
from hltnode.processing.lhcb.tracks.long.collections import (
    MAX_TRACKS_PER_EVENT,
    long_count,
    long_qop,
    long_state,
    long_types,
)
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.chain_builder import build_chain
from tests.processing.framework.given_columns import given_columns
from tests.processing.framework.kernel_runner import Allocate, Launch, host_memory, on_cpu, run_algorithms
from tests.processing.framework.session_folders import session_folder

DECODING = (fragment_offsets, find_cells, hit_offsets, cross_strips)
IDENTIFICATION = (is_muon, correlated_chi2, measure_tracks, identify_tracks)
NO_FLAG = EventFlag(0)
OTHER_BANKS = 1 << 16
"""Bytes of other detectors in an event: the memory of muon hits grows with the bytes of all detectors."""
HIT_COLUMNS = ("x", "y", "z", "dx", "dy", "tile", "time", "time_y")
GIVEN_TRACKS = (long_count, long_qop, *long_state.values(), long_beam_state["ty"], long_ecal_energy)
BEAM_TY = 0.9
"""Slope in y at the beam of the given tracks, in units of that behind the SciFi."""


@functools.cache
def muon_chain() -> Chain:
    """The kernels, compiled for the tests of this process."""
    folder = session_folder("hltnode-muon-")
    chain = Chain(
        name="muon",
        sequence=AlgorithmSequence(
            (*DECODING, given_columns("given_long_tracks", GIVEN_TRACKS, folder), *IDENTIFICATION)
        ),
        kernels=KernelSources("generated/muon_chain_kernels.h", (PROCESSING, folder), str(folder / "muon.so")),
        source=folder / "muon_chain.py",
        readout=LHCB_READOUT,
        subdetectors=frozenset({SubDetector.MUON_A, SubDetector.MUON_C}),
        types=(raw_data_types, long_types, muon_types, muon_network_types),
    )
    build_chain(chain)
    return chain


@dataclass(frozen=True, slots=True, eq=False)
class MuonEvent:
    """Output of the chain for one event: flags, hits by station; for each long track the muon decision, its nearest
    hits and its chi2, the features of trees, the numbers of its stub, and the response of the muon network."""

    flags: int
    station_offset: NDArray[np.uint16]
    hits: dict[str, NDArray[Any]]
    is_muon: NDArray[np.uint8]
    muon_hits: NDArray[np.uint16]
    chi2: NDArray[np.float32]
    features: NDArray[np.float32]
    stub: NDArray[np.float32]
    nn: NDArray[np.float32]

    def same_as(self, other: MuonEvent) -> bool:
        """Whether both events are equal bit by bit."""
        return (
            self.flags == other.flags
            and self.station_offset.tobytes() == other.station_offset.tobytes()
            and all(self.hits[name].tobytes() == other.hits[name].tobytes() for name in HIT_COLUMNS)
            and self.is_muon.tobytes() == other.is_muon.tobytes()
            and self.muon_hits.tobytes() == other.muon_hits.tobytes()
            and self.chi2.tobytes() == other.chi2.tobytes()
            and self.features.tobytes() == other.features.tobytes()
            and self.stub.tobytes() == other.stub.tobytes()
            and self.nn.tobytes() == other.nn.tobytes()
        )


@dataclass(frozen=True, slots=True, eq=False)
class MuonBatch:
    """A batch of MFPs with long tracks: f64[n, 5] per event, x, y, tx, ty at z = 9410 mm and q/p in 1/MeV."""

    mep: EncodedMep
    geometry: MuonGeometry
    tracks: Sequence[NDArray[np.float64]] = ()
    fields: FieldsOfInterest = field(default_factory=FieldsOfInterest.builtin)
    limits: BatchLimits | None = None
    flags: EventFlag = NO_FLAG
    max_hits: int | None = None

    def run(self, launch: Launch | None = None, *, fill: int = 0, allocate: Allocate = host_memory) -> list[MuonEvent]:
        """Run the chain, by default on the CPU, in memory whose bytes start as `fill`."""
        limits = self.limits or BatchLimits(
            events=self.mep.n_events,
            meps=1,
            input_bytes=OTHER_BANKS * self.mep.n_events + self.mep.data.nbytes,
            rows=max(len(self.mep.fragments), 1),
        )
        offsets = hit_offsets if self.max_hits is None else hit_offsets.with_constants({"max_hits": self.max_hits})
        columns = run_algorithms(
            (fragment_offsets, find_cells, offsets, cross_strips, *IDENTIFICATION),
            self._given(),
            self.mep.n_events,
            limits,
            launch or on_cpu(kernels=muon_chain().kernels),
            fill=fill,
            allocate=allocate,
        )
        return [self._event(columns, event) for event in range(self.mep.n_events)]

    def _given(self) -> dict[str, NDArray[Any]]:
        n, mep = self.mep.n_events, self.mep
        tables = BatchTables(
            header=np.zeros(1, BATCH_HEADER.dtype),
            mfp_rows=np.zeros(len(mep.fragments), MFP_ROW.dtype),
            mep_rows=np.zeros((1, N_SUBDETECTORS), ROW_RANGE.dtype),
            event_rows=np.zeros(n, EVENT_ROW.dtype),
            event_flags=np.zeros(n, np.uint32),
        )
        tables.fill([MepInBatch(n, mep.fragments, self.flags)], mep.data)
        count = np.zeros(n, np.uint32)
        tracks = np.zeros((5, n * MAX_TRACKS_PER_EVENT))
        for event, of_event in enumerate(self.tracks):
            count[event] = len(of_event)
            first = event * MAX_TRACKS_PER_EVENT
            tracks[:, first : first + len(of_event)] = of_event.T
        return {
            "input.bytes": mep.data,
            "input.mfp_rows": tables.mfp_rows,
            "input.mep_rows": tables.mep_rows,
            "input.event_rows": tables.event_rows,
            "events.flags": tables.event_flags,
            "muon_geometry": np.frombuffer(_geometry_bytes(self.geometry), MUON_GEOMETRY.dtype),
            "muon_field_of_interest": np.frombuffer(self.fields.to_bytes(), FIELD_OF_INTEREST.dtype),
            "long_tracks.count": count,
            "muon_network": np.frombuffer(MuonNetwork.builtin().to_bytes(), MUON_NETWORK.dtype),
            **{f"long_tracks.{name}": tracks[i] for i, name in enumerate(("x", "y", "tx", "ty", "qop"))},
            "long_tracks.beam_ty": BEAM_TY * tracks[3],
            "long_tracks.ecal_energy": np.full(n * MAX_TRACKS_PER_EVENT, 400.0, np.float32),
        }

    def _event(self, columns: dict[str, NDArray[Any]], event: int) -> MuonEvent:
        first = int(columns["muon_hits.offset"][event])
        last = first + int(columns["muon_hits.count"][event])
        first_track = event * MAX_TRACKS_PER_EVENT
        last_track = first_track + int(columns["long_tracks.count"][event])
        return MuonEvent(
            flags=int(columns["events.flags"][event]),
            station_offset=columns["muon_hits.station_offset"].reshape(-1, STATION_STRIDE)[event],
            hits={name: columns[f"muon_hits.{name}"][first:last] for name in HIT_COLUMNS},
            is_muon=columns["long_tracks.is_muon"][first_track:last_track],
            muon_hits=columns["long_tracks.muon_hits"].reshape(-1, N_STATIONS)[first_track:last_track],
            chi2=columns["long_tracks.muon_chi2"][first_track:last_track],
            features=columns["long_tracks.muon_features"].reshape(-1, len(FEATURES))[first_track:last_track],
            stub=columns["long_tracks.muon_stub"].reshape(-1, len(STUB_NUMBERS))[first_track:last_track],
            nn=columns["long_tracks.muon_nn"][first_track:last_track],
        )


@functools.lru_cache(maxsize=4)
def _geometry_bytes(geometry: MuonGeometry) -> bytes:
    return MuonCells.of(geometry).to_bytes()


def encode_mep(events: Sequence[Sequence[RawBank]]) -> EncodedMep:
    """The muon banks of events as the MFPs of one MEP."""
    return encode(muon_chain(), events)
