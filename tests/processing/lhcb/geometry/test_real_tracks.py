"""Geometry and field together: real particles, propagated from the VELO, reach their hits in UT and SciFi."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.magnet import DOWN, MEV_PER_TESLA_MM, Field, Magnet
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.geometry.ut import UtGeometry
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.protocol import RawBank
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.lhcb.banks.ut import decode_ut
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters
from hltnode.protocol.lhcb.lhcb_id import velo_lhcb_id, without_orientation
from hltnode.protocol.lhcb.truth import decode_particles
from tests.processing.lhcb.geometry.field_maps import field_map_of

pytestmark = pytest.mark.physics

STEP = 25.0
START, END = 750.0, 9450.0


class Track(NamedTuple):
    state: np.ndarray  # x, y, tx, ty at START
    q_over_p: float
    ut: np.ndarray  # rows of x at y = 0, z at y = 0, dx/dy, dz/dy
    scifi: np.ndarray


def tracks_of(event: list[RawBank]) -> Iterator[Track]:
    """Long particles of more than 10 GeV, no electrons, with a straight line through their VELO hits."""
    clusters = decode_retina_clusters(event)
    velo_xyz = VeloGeometry.builtin().local_to_global(
        clusters.sensor, clusters.column, clusters.row, clusters.fraction_x / 4, clusters.fraction_y / 4
    )
    ids = velo_lhcb_id(clusters.sensor, clusters.column // 256, clusters.column % 256, clusters.row)
    velo_place = {lhcb_id: i for i, lhcb_id in enumerate(ids.tolist())}
    ut, scifi = UtGeometry.builtin().hits(decode_ut(event)), SciFiGeometry.builtin().hits(decode_scifi(event))
    ut_place = {lhcb_id: i for i, lhcb_id in enumerate(ut.lhcb_id.tolist())}
    scifi_place = {lhcb_id: i for i, lhcb_id in enumerate(scifi.lhcb_id.tolist())}
    for particle in decode_particles(event):
        if not particle.is_long or abs(particle.pid) == 11 or particle.p < 10_000.0:
            continue
        pixels = without_orientation(np.array(particle.velo_ids, np.uint32)).tolist()
        x, y, z = velo_xyz[[velo_place[pixel] for pixel in pixels]].T
        tx, x_start = np.polyfit(z - START, x, 1)
        ty, y_start = np.polyfit(z - START, y, 1)
        in_ut = [ut_place[lhcb_id] for lhcb_id in particle.ut_ids]
        in_scifi = [scifi_place[lhcb_id] for lhcb_id in particle.scifi_ids]
        yield Track(
            np.array([x_start, y_start, tx, ty]),
            particle.charge / particle.p,
            np.stack([ut.x[in_ut], ut.z[in_ut], ut.dx_dy[in_ut], np.zeros(len(in_ut))], axis=1),
            np.stack([c[in_scifi] for c in (scifi.x, scifi.z, scifi.dx_dy, scifi.dz_dy)], axis=1),
        )


def follow(field: Field, states: np.ndarray, q_over_p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """z and states [n_z, 4, n] of particles, by the midpoint rule."""

    def slope(state: np.ndarray, z: float) -> np.ndarray:
        x, y, tx, ty = state
        bx, by, bz = field(x, y, z)
        factor = MEV_PER_TESLA_MM * q_over_p * np.sqrt(1.0 + tx**2 + ty**2)
        curve_x = tx * ty * bx - (1.0 + tx**2) * by + ty * bz
        curve_y = (1.0 + ty**2) * bx - tx * ty * by - tx * bz
        return np.stack([tx, ty, factor * curve_x, factor * curve_y])

    z = np.arange(START, END, STEP)
    states = states.copy()
    path = [states]
    for at in z[:-1].tolist():
        half_way = states + 0.5 * STEP * slope(states, at)
        states = states + STEP * slope(half_way, at + 0.5 * STEP)
        path.append(states)
    return z, np.stack(path)


def residuals(z: np.ndarray, path: np.ndarray, hits: list[np.ndarray]) -> np.ndarray:
    found = []
    for track, of_track in enumerate(hits):
        for x0, z0, dx_dy, dz_dy in of_track:
            y = np.interp(z0, z, path[:, 1, track])
            at = z0 + dz_dy * y
            y = np.interp(at, z, path[:, 1, track])
            found.append(np.interp(at, z, path[:, 0, track]) - (x0 + dx_dy * y))
    return np.array(found)


def test_real_particles_reach_their_hits(real_events: list[list[RawBank]]) -> None:
    tracks = [track for event in real_events for track in tracks_of(event)]
    assert len(tracks) > 100
    states = np.stack([track.state for track in tracks], axis=1)
    q_over_p = np.array([track.q_over_p for track in tracks])
    z, path = follow(field_map_of(Magnet(DOWN)).field, states, q_over_p)
    in_ut = residuals(z, path, [track.ut for track in tracks])
    in_scifi = residuals(z, path, [track.scifi for track in tracks])
    assert abs(np.median(in_ut)) < 0.2
    assert np.quantile(np.abs(in_ut), 0.68) < 0.6
    assert abs(np.median(in_scifi)) < 0.6
    assert np.quantile(np.abs(in_scifi), 0.68) < 4.0
    # Without the field the residuals would be much larger.
    z, straight = follow(lambda x, _y, _z: np.zeros((3, *np.shape(x))), states, q_over_p)
    assert np.median(np.abs(residuals(z, straight, [track.scifi for track in tracks]))) > 100.0
