"""Made-up long tracks that scatter as the fit assumes and bend in the field: their pulls must be one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.velo import Z_AXIS, BeamLine
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS, PRIMARY_VERTEX
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT
from tests.processing.lhcb.tracks.kalman.velo_fit_oracle import BEAM_LINE, FOIL, MODULE, Field, behind_foil, scattering
from tests.processing.lhcb.velo.track_sample import TrackSample

FIELD = Field(bend=0.0024, gradient=6.8e-6)
"""MeV/mm, MeV/mm²: field of the dipole, rounded."""
PLANES = np.arange(-250.0, 755.0, 25.0)
HIT_ERROR = 0.0125
Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class ToyTrack:
    """Measured hits [n, (x, y, z)] from large to small z, charge over momentum, the slopes at its vertex."""

    hits: NDArray[np.float64]
    qop: float
    slopes: NDArray[np.float64]


def toy_track(
    rng: np.random.Generator, vertex: Point, slopes: NDArray[np.float64], qop: float, field: Field = FIELD
) -> ToyTrack | None:
    """A track from a vertex; None if it has fewer than three hits.

    It is propagated from its last hit towards the vertex, as in the fit, and then moved so that it ends there.
    """
    distance = PLANES - vertex[2]
    radius = np.hypot(vertex[0] + slopes[0] * distance, vertex[1] + slopes[1] * distance)
    z = PLANES[(distance > 5.0) & (radius > 5.1) & (radius < 42.0)][::-1][-14:]
    if len(z) < 3:
        return None
    position = np.array(vertex[:2]) + slopes * (z[0] - vertex[2])
    slope = slopes.copy()
    points = [position]
    for before, here in pairwise(z):
        thickness = MODULE + (FOIL if behind_foil(*(position + slope * (here - before))) else 0.0)
        position, slope = scattered(rng, position, slope, here - before, qop, thickness, 0.643, 0.526)
        points.append(position)
    to_beam = float(-(slope @ position) / (slope @ slope))
    position, slope = scattered(rng, position, slope, to_beam, qop, BEAM_LINE, 0.808, 0.793)
    end = position + slope * (vertex[2] - z[-1] - to_beam)
    xy = np.array(points) + np.array(vertex[:2]) - end
    hits = np.column_stack([xy + rng.normal(0.0, HIT_ERROR, xy.shape), z])
    hits[:, 0] += qop * (field.position(z) - field.position(vertex[2]) - field.slope(vertex[2]) * (z - vertex[2]))
    return ToyTrack(hits, qop, slope)


def scattered(
    rng: np.random.Generator,
    position: NDArray[np.float64],
    slope: NDArray[np.float64],
    dz: float,
    qop: float,
    thickness: float,
    a: float,
    b: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Position and slope after a step; the noise of a thin layer at its start has a = b = 1."""
    noise = np.linalg.cholesky(np.array([[a**2 * dz**2, b * dz], [b * dz, 1.0]]) + 1e-12 * np.eye(2))
    kicks = np.sqrt(scattering(thickness, qop, slope))[:, None] * rng.normal(size=(2, 2)) @ noise.T
    return position + slope * dz + kicks[:, 0], slope + kicks[:, 1]


def tracks_from(rng: np.random.Generator, vertex: Point, n: int, field: Field = FIELD) -> list[ToyTrack]:
    """`n` tracks from a vertex with momenta of 2 to 50 GeV and slopes up to 0.25."""
    tracks: list[ToyTrack] = []
    while len(tracks) < n:
        slope, azimuth = rng.uniform(0.02, 0.25), rng.uniform(-np.pi, np.pi)
        qop = rng.choice([-1.0, 1.0]) / np.exp(rng.uniform(np.log(2e3), np.log(5e4)))
        track = toy_track(rng, vertex, slope * np.array([np.cos(azimuth), np.sin(azimuth)]), qop, field)
        if track is not None:
            tracks.append(track)
    return tracks


@dataclass(frozen=True, slots=True)
class ToyEvents:
    """Events of toy tracks with exact primary vertices, as columns."""

    tracks: Sequence[Sequence[ToyTrack]]
    pvs: Sequence[Sequence[Point]]
    muons: bool = False
    field: Field = FIELD
    beamline: BeamLine = Z_AXIS

    @property
    def sample(self) -> TrackSample:
        return TrackSample([[track.hits for track in event] for event in self.tracks], self.beamline)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Content of the columns that the chain fills up to the long tracks."""
        n = len(self.tracks)
        qop = np.zeros((n, MAX_TRACKS_PER_EVENT), np.float32)
        number = np.zeros((n, MAX_TRACKS_PER_EVENT), np.uint16)
        pvs = np.zeros((n, MAX_PVS), PRIMARY_VERTEX.dtype)
        for event, (tracks, vertices) in enumerate(zip(self.tracks, self.pvs, strict=True)):
            qop[event, : len(tracks)] = [track.qop for track in tracks]
            number[event, : len(tracks)] = np.arange(len(tracks))
            for i, vertex in enumerate(vertices):
                pvs[event, i] = (*vertex, 1e-4, 1e-6, 1e-4, 1e-5, -1e-5, 2.5e-3, 20.0)
        return {
            **self.sample.buffers(),
            "velo_field": np.array([self.field.bend, self.field.gradient], np.float32),
            "long_tracks.count": np.array([len(tracks) for tracks in self.tracks], np.uint32),
            "long_tracks.fitted_qop": qop.ravel(),
            "long_tracks.velo_track": number.ravel(),
            "long_tracks.is_muon": np.full(n * MAX_TRACKS_PER_EVENT, self.muons, np.uint8),
            "pvs.vertex": pvs.ravel(),
            "pvs.count": np.array([len(vertices) for vertices in self.pvs], np.uint32),
        }
