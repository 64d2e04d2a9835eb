"""Events of exact helices over slices, and the merged tracks that the chain finds in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.geometry.slices import local_from_global, slice_angle
from hltnode.processing.alice.tpc.collections import CLUSTERS_PER_TRACK, TRACK
from hltnode.processing.alice.tpc.merging.collections import MERGED_TRACK, SEGMENT_END
from hltnode.protocol.alice.tpc_banks import N_ROWS, N_SLICES
from tests.processing.alice.toy_events import GEOMETRY, UNIT, clusters_at, columns_of, event_of, mep_of
from tests.processing.alice.track_oracle import Slice


def helix(
    q_pt: float, phi: float, tan_lambda: float, z0: float, turns: float = 0.4, shift: float = 0.0
) -> dict[int, NDArray[np.void]]:
    """Clusters by slice of an exact helix from the beam, where it crosses a row."""
    k = UNIT * q_pt
    arc = np.linspace(1e-3, 2 * np.pi * turns / abs(k), 200_000)
    x = (np.sin(phi + k * arc) - np.sin(phi)) / k + shift
    y = (np.cos(phi) - np.cos(phi + k * arc)) / k
    z = z0 + tan_lambda * arc
    sector = np.floor(np.mod(np.arctan2(y, x), 2 * np.pi) / np.radians(20)).astype(int) % 18
    slices = sector + np.where(z < 0, 18, 0)
    local_x, local_y = local_from_global(slices, x, y)
    found: dict[int, list[NDArray[np.void]]] = {}
    row = np.searchsorted(GEOMETRY.row_x, local_x)
    cross = np.flatnonzero((row[1:] != row[:-1]) & (slices[1:] == slices[:-1]))
    for i in cross:
        r = min(row[i], row[i + 1])
        share = (GEOMETRY.row_x[r] - local_x[i]) / (local_x[i + 1] - local_x[i])
        at_y, at_z = (each[i] + share * (each[i + 1] - each[i]) for each in (local_y, z))
        steep = abs(np.sin(phi + k * arc[i] - slice_angle(slices[i : i + 1])[0])) > 0.96
        if abs(at_y) > GEOMETRY.half_width[r] - 1.3 or abs(at_z) > GEOMETRY.half_length or steep:
            continue
        found.setdefault(int(slices[i]), []).append(clusters_at(*map(np.atleast_1d, (r, at_y, abs(at_z)))))
    return {number: np.concatenate(each) for number, each in found.items()}


def together(*tracks: dict[int, NDArray[np.void]]) -> dict[int, NDArray[np.void]]:
    numbers = sorted({number for track in tracks for number in track})
    return {number: np.concatenate([track[number] for track in tracks if number in track]) for number in numbers}


class Merged:
    """The merged tracks of one event of a batch, and what they were made of. charges: by the number of the cluster."""

    def __init__(
        self, columns: dict[str, NDArray[Any]], event: int = 0, charges: NDArray[np.integer] | None = None
    ) -> None:
        self.charges = charges
        begin = int(columns["events.first_cluster"][event])
        first = begin // CLUSTERS_PER_TRACK + event * N_SLICES
        n, n_merged = (int(columns[f"{name}.count"][event]) for name in ("tpc_tracks", "tpc_merged_tracks"))
        of = slice(first, first + n)
        self.tracks = columns["tpc_tracks.track"].view(TRACK.dtype)[of]
        self.ends = np.column_stack(
            [columns[f"tpc_tracks.{name}"].view(SEGMENT_END.dtype)[of] for name in ("inner", "outer")]
        )
        self.bins, self.longer = columns["tpc_tracks.bin"][of], columns["tpc_tracks.longer"][of].astype(np.int64)
        self.rows = columns["tpc_tracks.rows"][2 * first : 2 * (first + n)].reshape(n, 2)
        self.best = columns["tpc_tracks.best_end"][2 * first : 2 * (first + n)].astype(np.int64)
        self.turn_score = columns["tpc_tracks.turn_score"][of]
        self.turn_chain = columns["tpc_tracks.turn_chain"][of].astype(np.int64)
        self.first_hit = columns["tpc_tracks.first_hit"][of]
        hit = (begin // 2 + event * 288) * 3
        self.hits = columns["tpc_track_clusters.cluster"][hit : hit + int(columns["tpc_track_clusters.count"][event])]
        self.places = columns["tpc_event_clusters.place"][begin:]
        self.cluster_rows = columns["tpc_event_clusters.row"][begin:]
        self.merged = columns["tpc_merged_tracks.track"].view(MERGED_TRACK.dtype)[first : first + n_merged]
        self.run = columns["tpc_merged_tracks.run"][first : first + n_merged]
        self.particle = columns["tpc_merged_tracks.particle"][first : first + n_merged]
        self.ionisation = columns["tpc_merged_tracks.ionisation"][first : first + n_merged]
        sizes = self.merged["n_segments"].astype(int)
        n_segments = int(columns["tpc_merged_segments.count"][event])
        segments = columns["tpc_merged_segments.segment"][first : first + n_segments]
        assert sizes.sum() == n_segments == n
        self.segments = [each.tolist() for each in np.split(segments, np.cumsum(sizes)[:-1])] if n else []
        self.flags = int(columns["events.flags"][event])

    def clusters(self, segment: int) -> NDArray[np.uint32]:
        begin = int(self.first_hit[segment])
        return self.hits[begin : begin + int(self.tracks["n_clusters"][segment])]


def event_of_all_kinds() -> Merged:
    """Curling particles, tracks over borders and the central electrode, and a track twice."""
    rng = np.random.default_rng(5)
    tracks = [helix(9.0 * s, rng.uniform(0, 6), 0.15, 3.0, 1.2) for s in (-1, 1)]
    tracks += [helix(rng.uniform(-4, 4), rng.uniform(0, 6), rng.uniform(-0.9, 0.9), -8.0) for _ in range(14)]
    tracks += [helix(1.5, 0.1 + 0.35 * i, -0.15, 20.0) for i in range(3)]
    late = [helix(q, phi, -0.3, 40.0) for q, phi in ((0.3, 0.2), (-0.6, 2.5), (0.2, 4.4))]
    for clusters in (each for track in late for each in track.values()):
        clusters["z"] += np.uint16(25.0 / 0.004)
    given = together(*tracks, *late)
    for number, clusters in given.items():
        clusters["y"] += np.rint(rng.normal(0, 0.05 / 0.0015, len(clusters))).astype(np.int16).view(np.uint16)
        clusters["z"] += np.rint(rng.normal(0, 0.05 / 0.004, len(clusters))).astype(np.int16).view(np.uint16)
        clusters["charge"] = rng.integers(1, 0xFFFF, len(clusters)) % 400 + 20
        given[number] = clusters
    columns = columns_of(mep_of([{}, event_of(given, 2)]))
    return Merged(columns, 1, np.concatenate([given[number]["charge"] for number in sorted(given)]))


def two_ends(gap: float, radius: float, first: int, second: int, **moved: float) -> NDArray[np.void]:
    """Two segments; the way out of end `first` of one leads on an exact circle to end `second` of the other one."""
    ends = np.zeros((2, 2), SEGMENT_END.dtype)
    ends["x"], ends["along_x"] = [[100, 100], [100, 100]], 0.0
    a, b, k = ends[0, first], ends[1, second], 1.0 / radius
    for end in (a, b):
        for name in ("dd", "zz"):
            end[name] = 0.01
        end["ff"], end["kk"], end["ll"] = 1e-4, 1e-8, 1e-4
    a["along_x"], a["along_y"], a["curvature"], a["slope"] = 1.0, 0.0, k, 0.1
    turn = gap * k
    b["x"] = a["x"] + np.sin(turn) / k
    b["y"] = a["y"] + (1 - np.cos(turn)) / k
    b["z"] = 0.1 * gap
    b["along_x"], b["along_y"], b["curvature"], b["slope"] = -np.cos(turn), -np.sin(turn), -k, -0.1
    for name, value in moved.items():
        b[name] += value
    return ends


def at_the_electrode(shift: float = 50.0, gap: float = 5.0, first: int = 1, second: int = 0) -> NDArray[np.void]:
    """Two segments whose ends lead over the central electrode, out of time by `shift` cm; the way between them is
    `gap` cm long, and the electrode is in its middle."""
    ends = two_ends(gap, 1000.0, first, second)
    ends[0, first]["slope"], ends[1, second]["slope"] = -0.1, 0.1
    ends[0, first]["z"], ends[1, second]["z"] = shift + 0.05 * gap, -shift - 0.05 * gap
    return ends


def slice_oracle(places: NDArray[np.uint32]) -> Slice:
    """A slice whose rows have all these clusters."""
    return Slice([places] * N_ROWS, GEOMETRY)
