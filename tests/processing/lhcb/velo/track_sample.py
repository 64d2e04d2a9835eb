"""VELO tracks as input of the kernels after the tracking: from truth of the real events, or made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.geometry.velo import Z_AXIS, BeamLine, VeloGeometry
from hltnode.processing.lhcb.velo.collections import MAX_HITS_PER_TRACK, VELO_GEOMETRY
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters
from hltnode.protocol.lhcb.truth import McVertex, decode_particles, decode_vertices
from hltnode.protocol.raw_data.mdf import iter_records

DEVELOPMENT_MDF = "data/lhcb-minbias-mdf/minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
ORIENTATION = 3 << 26
CHANNEL = 0x03FF_FFFF


@dataclass(frozen=True, slots=True)
class TrackSample:
    """Tracks of some events; each track is an array [hit, (x, y, z)] in mm, from large to small z."""

    events: Sequence[Sequence[NDArray[np.float64]]]
    beamline: BeamLine = Z_AXIS

    @property
    def limits(self) -> BatchLimits:
        """Limits that are just sufficient for the sample."""
        return BatchLimits(events=len(self.events), meps=1, input_bytes=4 * int(self.cluster_offset()[-1]), rows=1)

    def cluster_offset(self) -> NDArray[np.uint32]:
        """velo_cluster_offset: an event has a place for each hit, and for two clusters per track at least."""
        counts = [max(sum(len(track) for track in event), 2 * len(event) + 1) for event in self.events]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)

    def first_track(self, event: int) -> int:
        return int(self.cluster_offset()[event]) // 2

    def buffers(self) -> dict[str, NDArray[Any]]:
        """Content of the buffers that the tracking fills."""
        offset = self.cluster_offset()
        hits = np.zeros((3, offset[-1]), dtype=np.float32)
        hit_count = np.zeros(offset[-1] // 2 + 1, dtype=np.uint8)
        indices = np.zeros((offset[-1] // 2 + 1, MAX_HITS_PER_TRACK), dtype=np.uint16)
        for number, event in enumerate(self.events):
            hit = 0
            for i, track in enumerate(event):
                place = offset[number] // 2 + i
                hits[:, offset[number] + hit : offset[number] + hit + len(track)] = track.T
                hit_count[place] = len(track)
                indices[place, : len(track)] = np.arange(hit, hit + len(track))
                hit += len(track)
        geometry = np.zeros(1, VELO_GEOMETRY.dtype)
        for name in ("x", "y", "slope_x", "slope_y"):
            geometry[f"beamline_{name}"] = getattr(self.beamline, name)
        return {
            "velo_geometry": geometry,
            "velo_clusters.offset": offset,
            "velo_tracks.count": np.array([len(event) for event in self.events], dtype=np.uint32),
            "velo_tracks.hit_count": hit_count[: offset[-1] // 2],
            "velo_tracks.hits": indices[: offset[-1] // 2],
            "velo_hits.x": hits[0],
            "velo_hits.y": hits[1],
            "velo_hits.z": hits[2],
        }


def truth_tracks(shared: Path) -> tuple[TrackSample, list[list[McVertex]], list[list[NDArray[np.uint32]]]]:
    """The VELO tracks of the particles of the seven real events (3 hits or more), the vertices, the channel ids."""
    geometry = VeloGeometry.load(shared / "data/lhcb-geometry")
    events, vertices = [], []
    channels: list[list[NDArray[np.uint32]]] = []
    for record in iter_records((shared / DEVELOPMENT_MDF).read_bytes(), verify_checksum=False):
        banks = record.banks()
        clusters = decode_retina_clusters([bank for bank in banks if bank.type == LhcbBankType.VP_RETINA_CLUSTER])
        unit = 1 << clusters.fraction_bits
        position = geometry.local_to_global(
            clusters.sensor, clusters.column, clusters.row, clusters.fraction_x / unit, clusters.fraction_y / unit
        )
        chip, column = clusters.column >> 8, clusters.column & 255
        channel = (clusters.sensor << 18 | chip << 16 | column << 8 | clusters.row).astype(np.uint32)
        place = {int(value): i for i, value in enumerate(channel)}
        tracks, ids = [], []
        for particle in decode_particles([bank for bank in banks if bank.type == LhcbBankType.MC_TRACKS]):
            found = sorted(
                (place[value & CHANNEL] for value in particle.velo_ids if value & CHANNEL in place),
                key=lambda i: -position[i, 2],
            )[:MAX_HITS_PER_TRACK]
            if len(found) >= 3:
                tracks.append(position[found])
                ids.append(channel[found])
        events.append(tracks)
        channels.append(ids)
        vertices.append(decode_vertices(next(bank for bank in banks if bank.type == LhcbBankType.MC_VERTICES)))
    return TrackSample(events, geometry.beamline), vertices, channels


def made_up_tracks(
    rng: np.random.Generator, vertices: Sequence[tuple[float, float, float]], tracks_per_vertex: int
) -> list[NDArray[np.float64]]:
    """Straight tracks from the vertices in both directions of z, hits smeared by 12.5 um; at most 20 hits each."""
    planes = np.arange(-300.0, 760.0, 25.0)
    tracks = []
    for vertex in vertices:
        for _ in range(tracks_per_vertex):
            slope, azimuth = rng.uniform(0.03, 0.3), rng.uniform(-np.pi, np.pi)
            direction = slope * np.array([np.cos(azimuth), np.sin(azimuth)])
            sign = 1.0 if rng.random() < 0.6 else -1.0
            distance = sign * (planes - vertex[2])
            radius = slope * distance
            z = planes[(radius > 5.0) & (radius < 40.0)]
            if len(z) < 3:
                continue
            z = np.sort(z)[::-1]
            z = z[-20:] if sign > 0 else z[:20]
            xy = np.array(vertex[:2]) + sign * direction * (z - vertex[2])[:, None] + rng.normal(0, 0.0125, (len(z), 2))
            tracks.append(np.column_stack([xy, z]))
    return tracks
