"""Small events of circles in the slices of the TPC, and the chain on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.geometry.tpc_geometry import builtin_geometry
from hltnode.processing.alice.tpc.collections import CLUSTERS_PER_TRACK, SPARE_PAIRS, TRACK
from hltnode.processing.alice.tpc.merging.collections import MERGED_TRACK
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MFP_ALIGNMENT
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.alice.tpc_banks import (
    CLUSTER,
    N_ROWS,
    N_SLICES,
    TPC_VERSION,
    TpcBankType,
    numbers_of_places,
    tpc_source,
)
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mfp import encode_mfp

GEOMETRY = builtin_geometry()
UNIT = -0.000299792458 * 5.0
"""Curvature in 1/cm of a track with q/pT of 1 c/GeV."""


@dataclass(frozen=True, slots=True)
class ToySlice:
    """Clusters of a slice, and the track of each; -1 for noise."""

    clusters: NDArray[np.void]
    tracks: NDArray[np.int64]


def circle_places(
    q_pt: float, phi: float, tan_lambda: float, z0: float
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows, y and drift of an exact helix from the origin in the frame of a slice, where it is inside."""
    x = GEOMETRY.row_x
    k = UNIT * q_pt
    sine = np.sin(phi) + k * x
    inside = np.abs(sine) < 0.9
    sine = np.where(inside, sine, 0.0)
    turn = np.arcsin(sine) - phi
    y = (np.cos(phi) - np.cos(np.arcsin(sine))) / k if abs(k) > 1e-9 else x * np.tan(phi)
    arc = turn / k if abs(k) > 1e-9 else x / np.cos(phi)
    z = z0 + tan_lambda * arc
    inside &= (np.abs(y) < GEOMETRY.half_width - 0.5) & (z > 0.5) & (z < GEOMETRY.half_length)
    rows = np.flatnonzero(inside)
    return rows, y[rows], z[rows]


def toy_slice(rng: np.random.Generator, n_tracks: int, n_noise: int = 0, sigma: float = 0.08) -> ToySlice:
    """Tracks from the origin with smeared clusters in a random order; 3 % of the clusters are missing."""
    found, of_track = [], []
    for track in range(n_tracks):
        q_pt = rng.choice([-1.0, 1.0]) / rng.uniform(0.3, 4.0)
        rows, y, z = circle_places(q_pt, rng.uniform(-0.15, 0.15) - UNIT * q_pt * 60.0, rng.uniform(0.05, 0.9), 2.0)
        seen = rng.random(len(rows)) < 0.97
        rows, y, z = rows[seen], y[seen], z[seen]
        found.append(clusters_at(rows, y + rng.normal(0, sigma, len(y)), z + rng.normal(0, sigma, len(z))))
        of_track.append(np.full(len(rows), track))
    rows = rng.integers(0, N_ROWS, n_noise)
    noise = clusters_at(rows, rng.uniform(-1, 1, n_noise) * GEOMETRY.half_width[rows], rng.uniform(1, 240, n_noise))
    clusters = np.concatenate([*found, noise])
    tracks = np.concatenate([*of_track, np.full(n_noise, -1)]).astype(np.int64)
    order = rng.permutation(len(clusters))
    return ToySlice(clusters[order], tracks[order])


def clusters_at(rows: NDArray[np.integer], y: NDArray[np.floating], z: NDArray[np.floating]) -> NDArray[np.void]:
    """CLUSTER[rows] at places in cm."""
    clusters = np.zeros(len(rows), CLUSTER)
    clusters["row"] = rows
    clusters["y"], clusters["z"] = (np.clip(each, 0, 0xFFFF) for each in numbers_of_places(y, z))
    clusters["charge"] = 100
    return clusters


Event = dict[int, bytes | None]
"""Payload by source; None: no bank."""


def event_of(slices: dict[int, NDArray[np.void]], parts: int = 1) -> Event:
    """Clusters of slices, each in a number of banks."""
    return {
        tpc_source(number, part // 8, part % 8): np.ascontiguousarray(chunk).tobytes()
        for number, clusters in slices.items()
        for part, chunk in enumerate(np.array_split(clusters, parts))
    }


def mep_of(
    events: Sequence[Event], first_event: int = 0, *, version: int = TPC_VERSION, kind: int = TpcBankType.CLUSTERS
) -> EncodedMep:
    """A MEP with an MFP of each source of its events."""
    sources = sorted({source for event in events for source in event})
    data, places = bytearray(), []
    for source in sources:
        payloads = [event.get(source) for event in events]
        mfp = encode_mfp(
            source_id=source,
            event_id=first_event,
            version=version,
            types=[NO_BANK if payload is None else kind for payload in payloads],
            fragments=[payload or b"" for payload in payloads],
            align=2,
        )
        places.append((source, len(data), len(mfp)))
        data += mfp + bytes(-len(mfp) % MFP_ALIGNMENT)
    return EncodedMep(EventTable.of_events([[] for _ in events]), np.frombuffer(bytes(data), np.uint8), tuple(places))


COLUMNS = (
    *("events.first_cluster", "all_tpc_clusters.count", "tpc_tracklets.count", "tpc_slices.row_counts"),
    *("tpc_tracks.count", "tpc_tracks.track", "tpc_track_clusters.count", "tpc_track_clusters.cluster"),
    *("tpc_merged_tracks.count", "tpc_merged_tracks.track"),
    *("tpc_merged_segments.count", "tpc_merged_segments.segment"),
    *("tpc_jets.count", "tpc_jets.jet", "tpc_v0s.count", "tpc_v0s.v0"),
    *("events.number", "events.flags"),
)
"""Every column that the chain writes for lines and outputs, and the clusters of rows."""


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """Tracks of an event, and the numbers of their clusters, one track after the other; merged tracks and segments."""

    tracks: NDArray[np.void]
    clusters: NDArray[np.uint32]
    n_clusters: int
    flags: int
    number: int
    merged: NDArray[np.void]
    segments: NDArray[np.uint32]

    def same_as(self, other: FoundEvent) -> bool:
        """Whether both events are equal bit by bit."""
        return (
            self.tracks.tobytes() == other.tracks.tobytes()
            and self.clusters.tobytes() == other.clusters.tobytes()
            and self.merged.tobytes() == other.merged.tobytes()
            and self.segments.tobytes() == other.segments.tobytes()
            and (self.n_clusters, self.flags, self.number) == (other.n_clusters, other.flags, other.number)
        )

    def clusters_of_tracks(self) -> list[NDArray[np.uint32]]:
        """The clusters of each track."""
        return (
            np.split(self.clusters, np.cumsum(self.tracks["n_clusters"].astype(int))[:-1]) if len(self.tracks) else []
        )


def columns_of(mep: EncodedMep, toml: str = "", threads: int = 1) -> dict[str, NDArray[Any]]:
    """All columns of the batch of a MEP, by name."""
    n = mep.n_events
    limits = BatchLimits(events=n, meps=1, input_bytes=-(-mep.data.nbytes // 8) * 8, rows=max(len(mep.fragments), 1))
    trigger = TriggerConfig.from_toml(toml, CHAIN.menu)
    backend = create_backend("cpu", CHAIN.kernels, threads=threads)
    engine = CHAIN.create_engine(backend, CHAIN.load_geometry(None), trigger, limits, retain="all")
    try:
        (batch,) = OfflineRunner(engine, workspaces=1).run([mep])
        names = [column.name for column in engine.plan.sequence.columns if column.name in engine.plan.readable]
        return {name: batch.workspace.fetch(name).copy() for name in names}
    finally:
        engine.close()


def events_of(columns: dict[str, NDArray[Any]], n_events: int) -> list[FoundEvent]:
    """The events of a batch."""
    begins = columns["events.first_cluster"]
    found = []
    for event in range(n_events):
        first, n = int(begins[event]) // CLUSTERS_PER_TRACK + event * N_SLICES, int(columns["tpc_tracks.count"][event])
        hit = (int(begins[event]) // 2 + event * N_SLICES * SPARE_PAIRS) * 3
        n_hits = int(columns["tpc_track_clusters.count"][event])
        n_merged, n_segments = (int(columns[f"tpc_merged_{name}.count"][event]) for name in ("tracks", "segments"))
        found.append(
            FoundEvent(
                columns["tpc_tracks.track"].view(TRACK.dtype)[first : first + n],
                columns["tpc_track_clusters.cluster"][hit : hit + n_hits],
                int(columns["all_tpc_clusters.count"][event]),
                int(columns["events.flags"][event]),
                int(columns["events.number"][2 * event]),
                columns["tpc_merged_tracks.track"].view(MERGED_TRACK.dtype)[first : first + n_merged],
                columns["tpc_merged_segments.segment"][first : first + n_segments],
            )
        )
    return found


def run_chain(mep: EncodedMep, toml: str = "", threads: int = 1) -> list[FoundEvent]:
    """The events of a MEP through the chain."""
    return events_of(columns_of(mep, toml, threads), mep.n_events)


def mixed_events(seed: int) -> list[Event]:
    """Four events: tracks on both sides, nothing, a bank that is broken, and noise."""
    rng = np.random.default_rng(seed)
    first = {0: toy_slice(rng, 4, 10).clusters, 20: toy_slice(rng, 3).clusters}
    third: Event = event_of({7: toy_slice(rng, 3).clusters})
    third[tpc_source(8)] = b"\0" * 7
    return [
        event_of(first, 3),
        {},
        third,
        event_of({0: toy_slice(rng, 0, 200).clusters, 35: toy_slice(rng, 2).clusters}),
    ]
