"""Input of the checker: tracks and vertices of a batch, copied back from the device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.muon.collections import long_is_muon
from hltnode.processing.lhcb.offline.validation.checker.calorimeter_columns import (
    CLUSTER_COLUMNS,
    ELECTRON_COLUMNS,
    ClusterTable,
    EcalTracks,
    has_calorimeter,
)
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.decays import VertexTable
from hltnode.processing.lhcb.offline.validation.checker.downstream_tracks import (
    DOWNSTREAM_COLUMNS,
    has_downstream,
    read_downstream,
)
from hltnode.processing.lhcb.offline.validation.checker.downstream_v0s import (
    DOWNSTREAM_V0_COLUMNS,
    has_downstream_v0s,
    read_downstream_v0s,
)
from hltnode.processing.lhcb.offline.validation.checker.half_vertices import (
    HALF_COLUMNS,
    HalfVertices,
    has_halves,
    read_half_vertices,
)
from hltnode.processing.lhcb.offline.validation.checker.long_columns import (
    LONG_COLUMNS,
    VERTEX_COLUMNS,
    cuts_of,
    passes_muon_stations,
    vertices_of,
)
from hltnode.processing.lhcb.offline.validation.checker.muon_columns import SCORE_COLUMNS, MuonScores, has_scores
from hltnode.processing.lhcb.offline.validation.checker.muon_stubs import STUB_COLUMNS, StubTable, has_stubs
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackStates, TrackTable
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS, pv_count, vertices
from hltnode.processing.lhcb.raw_data.flags import GLOBAL_EVENT_CUT
from hltnode.processing.lhcb.scifi import collections as scifi
from hltnode.processing.lhcb.secondary_vertices.downstream.collections import downstream_v0_count, downstream_v0s
from hltnode.processing.lhcb.tracks.downstream.collections import downstream_count, downstream_tracks
from hltnode.processing.lhcb.tracks.kalman.collections import (
    long_beam_state,
    long_fitted_qop,
    long_full_chi2,
    long_qop_error,
)
from hltnode.processing.lhcb.tracks.long.collections import (
    long_count,
    long_hits,
    long_qop,
    long_tracks,
    long_ut_hits,
    long_velo_track,
)
from hltnode.processing.lhcb.ut import collections as ut
from hltnode.processing.lhcb.velo import collections as velo
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.workspace_columns import Hits, Objects
from hltnode.protocol.lhcb.lhcb_id import FT_TYPE, UT_TYPE, VP_TYPE

_PV_COLUMNS = ("x", "y", "z", "c00", "c11", "c22")
_READ = {
    Stage.VELO: (
        velo.cluster_offset,
        velo.cluster_count,
        velo.hit_id,
        velo.hit_x,
        velo.hit_y,
        velo.hit_z,
        velo.track_count,
        velo.track_hit_count,
        velo.track_hits,
        velo.track_backward,
        *velo.beamline_state.values(),
        pv_count,
        vertices,
    ),
    Stage.UT: (ut.ut_track_count, ut.ut_track_velo, ut.ut_track_qop, ut.ut_track_hits),
    Stage.LONG: (
        *(scifi.scifi_hit_offset, scifi.scifi_count, scifi.scifi_id),
        *(long_count, long_velo_track, long_qop, long_hits, long_ut_hits, *LONG_COLUMNS),
    ),
}
"""Columns that are read of each stage."""
_UT_HITS = (ut.ut_hit_offset, ut.ut_count, ut.ut_id)
_LONG_STATE = {name: column for name, column in long_beam_state.items() if name != "qop"}
_ALSO = (long_is_muon, long_fitted_qop, long_qop_error, long_full_chi2, *_LONG_STATE.values(), *VERTEX_COLUMNS)
"""Columns of long tracks and of their vertices, which are read if the sequence has them."""

_SMALLEST_QOP = 1e-9
"""1/MeV: a track whose q/p is 0 counts as one of 1,000 TeV."""


def stages_of(sequence: AlgorithmSequence) -> tuple[Stage, ...]:
    """The tracking stages that a sequence yields."""
    return tuple(stage for stage, columns in _READ.items() if set(columns) <= set(sequence.columns))


def retained(sequence: AlgorithmSequence, also: Sequence[Column] = ()) -> tuple[str, ...]:
    """Names of the columns that an engine must retain: those read here, and those of `also` that the sequence has."""
    columns: list[Column] = [column for stage in stages_of(sequence) for column in _READ[stage]]
    columns += [column for column in (*_ALSO, *also) if column in sequence.columns]
    columns += _UT_HITS if _has_ut(sequence) else ()
    columns += (*CLUSTER_COLUMNS, *ELECTRON_COLUMNS) if has_calorimeter(sequence) else ()
    columns += SCORE_COLUMNS if has_scores(sequence) else ()
    columns += HALF_COLUMNS if has_halves(sequence) else ()
    columns += STUB_COLUMNS if has_stubs(sequence) else ()
    columns += DOWNSTREAM_COLUMNS if has_downstream(sequence) else ()
    columns += DOWNSTREAM_V0_COLUMNS if has_downstream_v0s(sequence) else ()
    return tuple(dict.fromkeys(column.name for column in columns))


def _has_ut(sequence: AlgorithmSequence) -> bool:
    """Whether a sequence decodes the UT; one without it has columns of UT hits that stay empty."""
    return ut.ut_group_offset in sequence.columns


@dataclass(frozen=True, slots=True)
class ReconstructedBatch:
    """The events of a batch: tracks by stage; for each event its hits (LHCbIDs, u32[n]) by detector (VP_TYPE, UT_TYPE,
    FT_TYPE), the positions of its VELO hits (f32[n, 3] in mm), its vertices (f32[n, 6] = x, y, z in mm and their
    variances in mm²), and whether the global event cut has removed it (bool[events]); vertices of two long tracks,
    clusters of the calorimeter, downstream tracks, their vertices, stubs of the muon stations, and the vertices of the
    VELO halves of each event, None of a sequence without."""

    n_events: int
    tracks: dict[Stage, TrackTable]
    hits: list[dict[int, NDArray[np.uint32]]]
    velo_positions: list[NDArray[np.float32]]
    pvs: list[NDArray[np.float32]]
    is_cut: Mask
    two_track: VertexTable | None
    clusters: ClusterTable | None = None
    downstream: TrackTable | None = None
    downstream_v0s: VertexTable | None = None
    stubs: StubTable | None = None
    halves: list[HalfVertices] | None = None


def reconstructed_batch(workspace: Workspace) -> ReconstructedBatch:
    """Tracks and vertices of the batch that a workspace has just run. Waits for the device."""
    sequence = workspace.sequence
    stages = stages_of(sequence)
    n_events = workspace.n_events
    hits = {VP_TYPE: Hits.read(workspace, velo.cluster_offset, velo.cluster_count, velo.hit_id)}
    found = _VeloTracks.read(workspace, hits[VP_TYPE])
    tracks = {Stage.VELO: found.table}
    two_track, downstream, of_downstream = None, None, None
    stubs = StubTable.read(workspace) if has_stubs(sequence) else None
    if _has_ut(sequence):
        hits[UT_TYPE] = Hits.read(workspace, *_UT_HITS)
    if Stage.UT in stages:
        tracks[Stage.UT] = _ut_tracks(workspace, found, hits[UT_TYPE])
    if Stage.LONG in stages:
        hits[FT_TYPE] = Hits.read(workspace, scifi.scifi_hit_offset, scifi.scifi_count, scifi.scifi_id)
        of = Objects(workspace, long_tracks, long_count)
        long = _long_tracks(sequence, of, found, hits)
        if stubs is not None:
            long = replace(long, near_stub=stubs.near_long_tracks(of))
        tracks[Stage.LONG] = long
        if long.p is not None and set(VERTEX_COLUMNS) <= set(sequence.columns):
            two_track = vertices_of(workspace, of.first_row, long.p)
    if has_downstream(sequence):
        of = Objects(workspace, downstream_tracks, downstream_count)
        downstream = read_downstream(of, hits[UT_TYPE], hits[FT_TYPE])
        if has_downstream_v0s(sequence):
            v0s = Objects(workspace, downstream_v0s, downstream_v0_count)
            of_downstream = read_downstream_v0s(v0s, of.first_row)
    n_pvs = workspace.fetch("pvs.count")[:n_events]
    pvs = workspace.fetch("pvs.vertex").reshape(-1, MAX_PVS)[:n_events]
    columns = np.stack([pvs[name] for name in _PV_COLUMNS], axis=2).astype(np.float32)
    places = [workspace.fetch(column.name, len(hits[VP_TYPE].ids)) for column in (velo.hit_x, velo.hit_y, velo.hit_z)]
    positions = np.stack(places, axis=1)
    ends = zip(hits[VP_TYPE].first, hits[VP_TYPE].first + hits[VP_TYPE].count, strict=True)
    return ReconstructedBatch(
        n_events=n_events,
        tracks=tracks,
        hits=[{number: of.of_event(event) for number, of in hits.items()} for event in range(n_events)],
        velo_positions=[positions[begin:end] for begin, end in ends],
        pvs=[columns[event, :n] for event, n in enumerate(n_pvs)],
        is_cut=workspace.host_array(event_flags.name)[:n_events] & GLOBAL_EVENT_CUT.mask != 0,
        two_track=two_track,
        clusters=ClusterTable.read(workspace) if has_calorimeter(sequence) else None,
        downstream=downstream,
        downstream_v0s=of_downstream,
        stubs=stubs,
        halves=read_half_vertices(workspace) if has_halves(sequence) else None,
    )


@dataclass(frozen=True, slots=True)
class _VeloTracks:
    """The VELO tracks as other stages need them.

    first_row: of the tracks of each event. ids: of the hits, u32[n, 26], padded with 0. states: at the beam line.
    """

    table: TrackTable
    first_row: Int64Array
    ids: NDArray[np.uint32]
    states: TrackStates

    @classmethod
    def read(cls, workspace: Workspace, hits: Hits) -> Self:
        of = Objects(workspace, velo.tracks, velo.track_count)
        used = np.arange(velo.MAX_HITS_PER_TRACK) < of(velo.track_hit_count)[:, None]
        ids = hits.of_tracks(of.event, of(velo.track_hits), used)
        state = {name: of(column).astype(np.float64) for name, column in velo.beamline_state.items()}
        # The filter of VELO tracks has the same covariances in x and y.
        states = TrackStates(**state, c11=state["c00"], c31=state["c20"], c33=state["c22"])
        flies = np.where(of(velo.track_backward) != 0, -1.0, 1.0)
        table = TrackTable(
            event=of.event,
            **_joined_ids(ids),
            eta=_eta(states.tx, states.ty, flies),
            phi=np.arctan2(flies * states.ty, flies * states.tx),
            states=states,
            cuts={"hits": of(velo.track_hit_count).astype(np.float64)},
        )
        return cls(table, of.first_row, ids, states)

    def with_hits(
        self, event: Int64Array, track: NDArray[np.uint16], qop: NDArray[np.float32], *more: NDArray[np.uint32]
    ) -> TrackTable:
        """Tracks that continue VELO tracks, given by their numbers in the event; `more`: ids of their further hits,
        u32[n, width]. Their states and directions are those of the VELO tracks."""
        row = self.first_row[event] + track
        states = TrackStates(*(getattr(self.states, field.name)[row] for field in fields(TrackStates)))
        slope2 = states.tx**2 + states.ty**2
        p = 1 / np.maximum(np.abs(qop.astype(np.float64)), _SMALLEST_QOP)
        return TrackTable(
            event=event,
            **_joined_ids(np.concatenate((self.ids[row], *more), axis=1)),
            p=p,
            pt=p * np.sqrt(slope2 / (1 + slope2)),
            eta=_eta(states.tx, states.ty, np.ones(len(row))),
            phi=np.arctan2(states.ty, states.tx),
            states=states,
        )


def _ut_tracks(workspace: Workspace, of_velo: _VeloTracks, hits: Hits) -> TrackTable:
    of = Objects(workspace, ut.ut_tracks, ut.ut_track_count)
    places = of(ut.ut_track_hits)
    used = places != ut.NO_HIT
    tracks = of_velo.with_hits(
        of.event, of(ut.ut_track_velo), of(ut.ut_track_qop), hits.of_tracks(of.event, places, used)
    )
    return replace(tracks, cuts={"ut_hits": used.sum(axis=1).astype(np.float64)})


def _long_tracks(
    sequence: AlgorithmSequence, of: Objects, of_velo: _VeloTracks, hits: Mapping[int, Hits]
) -> TrackTable:
    places = of(long_hits)
    ids = [hits[FT_TYPE].of_tracks(of.event, places, places != scifi.NO_HIT)]
    if UT_TYPE in hits:
        places = of(long_ut_hits)
        ids.append(hits[UT_TYPE].of_tracks(of.event, places, places != ut.NO_HIT))
    columns = sequence.columns
    qop = of(long_fitted_qop if long_fitted_qop in columns else long_qop)
    tracks = of_velo.with_hits(of.event, of(long_velo_track), qop, *ids)
    if set(_LONG_STATE.values()) <= set(columns):
        # With the momentum their scattering is known, which the filter of VELO tracks must assume.
        state = {name: of(column).astype(np.float64) for name, column in _LONG_STATE.items()}
        tracks = replace(tracks, states=TrackStates(**state))
    return replace(
        tracks,
        qop_error=of(long_qop_error).astype(np.float64) if long_qop_error in columns else None,
        is_muon=of(long_is_muon) != 0 if long_is_muon in columns else None,
        passes_muon_stations=passes_muon_stations(of) if long_is_muon in columns else None,
        ecal=EcalTracks.read(of) if has_calorimeter(sequence) else None,
        muon_scores=MuonScores.read(of) if has_scores(sequence) else None,
        cuts=cuts_of(sequence, of),
    )


def _joined_ids(ids: NDArray[np.uint32]) -> dict[str, Any]:
    """The columns of a TrackTable for ids u32[n, width] with 0 where there is none."""
    used = ids != 0
    return {"ids": ids[used], "n_ids": used.sum(axis=1)}


def _eta(tx: Float64Array, ty: Float64Array, flies: Float64Array) -> Float64Array:
    # A track exactly along the beam would have infinite pseudorapidity.
    slope = np.maximum(np.hypot(tx, ty), 1e-9)
    eta: Float64Array = flies * np.arcsinh(1 / slope)
    return eta
