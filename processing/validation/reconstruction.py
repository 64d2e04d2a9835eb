"""What the checker compares with truth: tracks and vertices of a batch, copied back from the device."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.engine import Workspace
from hltnode.processing.hlt1.velo_buffers import MAX_HITS_PER_TRACK, MAX_PVS


@dataclass(frozen=True, slots=True)
class ReconstructedEvent:
    """velo_tracks: LHCbIDs (u32) of each track; pvs: f32[n, 4] = x, y, z in mm and variance of z in mm^2."""

    velo_tracks: list[NDArray[np.uint32]]
    pvs: NDArray[np.float32]


def reconstructed_events(workspace: Workspace) -> Iterator[ReconstructedEvent]:
    """Tracks and vertices of each event of the batch that a workspace has just run. Waits for the device."""
    n_events = workspace.n_events
    first_cluster = workspace.fetch("velo_cluster_offset")
    n_tracks = workspace.fetch("velo_track_count")
    n_hits = workspace.fetch("velo_track_hit_count")
    hits = workspace.fetch("velo_track_hits").reshape(-1, MAX_HITS_PER_TRACK)
    ids = workspace.fetch("velo_hit_id")
    n_pvs = workspace.fetch("pv_count")
    pvs = workspace.fetch("pvs").reshape(-1, MAX_PVS)
    for event in range(n_events):
        base = int(first_cluster[event])
        first_track = base // 2
        tracks = [
            ids[base + hits[track, : n_hits[track]].astype(np.intp)]
            for track in range(first_track, first_track + int(n_tracks[event]))
        ]
        vertices = pvs[event, : n_pvs[event]]
        columns = [vertices[name] for name in ("x", "y", "z", "c22")]
        yield ReconstructedEvent(tracks, np.stack(columns, axis=1).astype(np.float32))
