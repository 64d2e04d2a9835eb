"""Input of the checker: tracks and vertices of a batch, copied back from the device."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.engine import Workspace
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS, vertices
from hltnode.processing.lhcb.validation.checker.categories import Stage
from hltnode.processing.lhcb.validation.checker.particles import Float64Array
from hltnode.processing.lhcb.validation.checker.tracks import TrackStates, TrackTable
from hltnode.processing.lhcb.velo.collections import (
    MAX_HITS_PER_TRACK,
    beamline_state,
    cluster_offset,
    hit_id,
    track_backward,
    track_hit_count,
    track_hits,
    tracks,
)

RETAIN = (
    *(column.name for column in (cluster_offset, hit_id, track_hit_count, track_hits, track_backward, vertices)),
    *(column.name for column in beamline_state.values()),
)
"""Columns that an engine must retain for what is read here."""

_PV_COLUMNS = ("x", "y", "z", "c00", "c11", "c22")


@dataclass(frozen=True, slots=True)
class ReconstructedBatch:
    """The events of a batch: tracks by stage; for each event its VELO hits (LHCbIDs, u32[n]) and its vertices
    (f32[n, 6] = x, y, z in mm and their variances in mm²)."""

    n_events: int
    tracks: dict[Stage, TrackTable]
    velo_hits: list[NDArray[np.uint32]]
    pvs: list[NDArray[np.float32]]


def reconstructed_batch(workspace: Workspace) -> ReconstructedBatch:
    """Tracks and vertices of the batch that a workspace has just run. Waits for the device."""
    n_events = workspace.n_events
    # Buffers have room for many more elements than most events have: only the used part is copied.
    offset = workspace.fetch("velo_clusters.offset", n_events + 1).astype(np.int64)
    first_cluster = offset[:-1]
    n_clusters = workspace.fetch("velo_clusters.count")[:n_events].astype(np.int64)
    hit_ids = workspace.fetch("velo_hits.id", int(offset[-1]))
    n_pvs = workspace.fetch("pvs.count")[:n_events]
    pvs = workspace.fetch("pvs.vertex").reshape(-1, MAX_PVS)[:n_events]
    columns = np.stack([pvs[name] for name in _PV_COLUMNS], axis=2).astype(np.float32)
    return ReconstructedBatch(
        n_events=n_events,
        tracks={Stage.VELO: _velo_tracks(workspace, first_cluster, hit_ids)},
        velo_hits=[hit_ids[first : first + n] for first, n in zip(first_cluster, n_clusters, strict=True)],
        pvs=[columns[event, :n] for event, n in enumerate(n_pvs)],
    )


def _velo_tracks(workspace: Workspace, first_cluster: NDArray[np.int64], hit_ids: NDArray[np.uint32]) -> TrackTable:
    n_tracks = workspace.fetch("velo_tracks.count")[: len(first_cluster)].astype(np.int64)
    event = np.repeat(np.arange(len(first_cluster)), n_tracks)
    row = np.arange(len(event)) + np.repeat(workspace.first(tracks) - (np.cumsum(n_tracks) - n_tracks), n_tracks)
    end = int(row.max(initial=-1)) + 1
    n_hits = workspace.fetch("velo_tracks.hit_count", end)[row].astype(np.int64)
    hits = workspace.fetch("velo_tracks.hits", end * MAX_HITS_PER_TRACK).reshape(-1, MAX_HITS_PER_TRACK)[row]
    used = np.arange(MAX_HITS_PER_TRACK) < n_hits[:, None]
    states = TrackStates(
        *(
            workspace.fetch(f"velo_beamline.{name}", end)[row].astype(np.float64)
            for name in ("x", "y", "z", "tx", "ty", "c00", "c20", "c22")
        )
    )
    flies = np.where(workspace.fetch("velo_tracks.backward", end)[row] != 0, -1.0, 1.0)
    return TrackTable(
        event=event,
        ids=hit_ids[(hits.astype(np.int64) + first_cluster[event][:, None])[used]],
        n_ids=n_hits,
        eta=_eta(states.tx, states.ty, flies),
        phi=np.arctan2(flies * states.ty, flies * states.tx),
        states=states,
    )


def _eta(tx: Float64Array, ty: Float64Array, flies: Float64Array) -> Float64Array:
    # A track exactly along the beam would have infinite pseudorapidity.
    slope = np.maximum(np.hypot(tx, ty), 1e-9)
    eta: Float64Array = flies * np.arcsinh(1 / slope)
    return eta
