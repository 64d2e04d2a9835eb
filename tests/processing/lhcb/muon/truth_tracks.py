"""Long tracks as input of muon identification, without long tracking: straight lines behind the magnet.

A track is a set of SciFi hits with a momentum: the particles of the truth banks, or LHCb's own forward tracks of the
same events. Its state at the end of the SciFi tracker is a fit to these hits: a parabola in x, and in y a line that
points to the collisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry, SciFiHitPositions
from hltnode.processing.lhcb.offline.validation.reference.forward_tracks import read_forward_tracks
from hltnode.processing.lhcb.tracks.long.collections import Z_END_SCIFI
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.lhcb.truth import McParticle, decode_particles
from hltnode.protocol.raw_data.raw_bank import RawBank

MIN_HITS = 6
_FT_TYPE = 5
_Y_AT_ORIGIN = 15.0  # mm, distance in y between line and collisions
_MUON = 13


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """Tracks of one event: `states` f64[n, 4] = x, y, tx, ty at z = 9410 mm, `p` in MeV, `pid` of the particle that
    owns 70 % of the hits (0: none)."""

    states: NDArray[np.float64]
    p: NDArray[np.float64]
    pid: NDArray[np.int64]

    @property
    def is_true_muon(self) -> NDArray[np.bool_]:
        return np.asarray(np.abs(self.pid) == _MUON, np.bool_)


def truth_tracks(event: Sequence[RawBank], geometry: SciFiGeometry) -> Tracks:
    """The long particles of an event."""
    hits, place = _scifi_hits(event, geometry)
    particles = [particle for particle in decode_particles(event) if particle.is_long]
    return _tracks(hits, place, [(p.scifi_ids, p.p, p.pid) for p in particles])


def forward_tracks(event: Sequence[RawBank], geometry: SciFiGeometry, dump: Path) -> Tracks:
    """LHCb's forward tracks of an event, read from their dump."""
    hits, place = _scifi_hits(event, geometry)
    table = read_forward_tracks([dump])
    of_tracks = np.split(table.ids, np.cumsum(table.n_ids)[:-1])
    particles = decode_particles(event)
    found = []
    assert table.p is not None
    for ids, p in zip(of_tracks, table.p.tolist(), strict=True):
        scifi_ids = tuple(ids[ids >> 28 == _FT_TYPE].tolist())
        found.append((scifi_ids, p, _pid(scifi_ids, particles)))
    return _tracks(hits, place, found)


def _scifi_hits(event: Sequence[RawBank], geometry: SciFiGeometry) -> tuple[SciFiHitPositions, dict[int, int]]:
    hits = geometry.hits(decode_scifi(event))
    return hits, {lhcb_id: i for i, lhcb_id in enumerate(hits.lhcb_id.tolist())}


def _pid(scifi_ids: Sequence[int], particles: Sequence[McParticle]) -> int:
    for particle in particles:
        if len(set(scifi_ids) & set(particle.scifi_ids)) >= 0.7 * len(scifi_ids):
            return particle.pid
    return 0


def _tracks(
    hits: SciFiHitPositions, place: dict[int, int], found: Sequence[tuple[Sequence[int], float, int]]
) -> Tracks:
    states, momenta, pids = [], [], []
    for ids, p, pid in found:
        chosen = np.array([place[lhcb_id] for lhcb_id in ids if lhcb_id in place], np.int64)
        if len(chosen) >= MIN_HITS and len(np.unique(hits.layer[chosen] % 4)) >= 3:
            states.append(_fit(hits, chosen))
            momenta.append(p)
            pids.append(pid)
    return Tracks(np.array(states).reshape(-1, 4), np.array(momenta), np.array(pids, np.int64))


def _fit(hits: SciFiHitPositions, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """x, y, tx, ty at the end of the SciFi tracker."""
    x, z, dx_dy = hits.x[chosen], hits.z[chosen], hits.dx_dy[chosen]
    y = np.zeros(len(x))
    fit = np.zeros(5)
    for _ in range(3):
        dz = z + hits.dz_dy[chosen] * y - Z_END_SCIFI
        rows = np.stack([np.ones(len(x)), dz, dz**2 * 1e-6, -dx_dy, -dx_dy * dz], axis=1) / 0.1
        origin = np.array([0.0, 0.0, 0.0, 1.0, -Z_END_SCIFI]) / _Y_AT_ORIGIN
        fit = np.linalg.lstsq(np.vstack([rows, origin]), np.append(x / 0.1, 0.0), rcond=None)[0]
        y = fit[3] + fit[4] * dz
    return np.array([fit[0], fit[3], fit[1], fit[4]])
