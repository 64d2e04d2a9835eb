"""Particles that turn back in the TPC: every crossing of an exact helix, without scattering and energy loss."""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.detector_constants import KG_TO_CURVATURE, SLICE_ANGLE, SLICES_OF_SIDE
from hltnode.processing.alice.geometry.tpc_geometry import TpcGeometry
from hltnode.processing.alice.offline.simulation.crossings import Crossings, joined_crossings, no_crossings
from hltnode.processing.alice.offline.simulation.particles import Particles

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_TURNS = 3
"""A curling particle is given up after these turns. Those from the beam cross the material once each turn."""
MIN_COSINE = 0.25
"""A crossing of a row at a flatter angle gives no cluster of its own: its charge is spread over many pads."""
OUTER_RADIUS = 250.0
"""cm: a particle that gets there has left the TPC."""


def curl(particles: Particles, chosen: Integers, geometry: TpcGeometry) -> Crossings:
    """Crossings of the chosen particles, which are charged."""
    if not len(chosen):
        return no_crossings()
    vx, vy, vz = particles.vertex[chosen].T
    px, py, pz = particles.momentum[chosen].T
    pt = np.hypot(px, py)
    bz = geometry.field.bz(vx**2 + vy**2, vz)
    curvature = -KG_TO_CURVATURE * bz * particles.charge[chosen] / pt
    radius, sense = 1.0 / np.abs(curvature), np.sign(curvature)
    slope = pz / pt
    centre_x, centre_y = vx - py / (pt * curvature), vy + px / (pt * curvature)
    start = np.arctan2(vy - centre_y, vx - centre_x)
    last = np.minimum(
        _angle_to_pads(vz, slope * radius, geometry.half_length),
        _angle_to_exit(centre_x, centre_y, radius, start, sense),
    )
    last = np.minimum(last, 2.0 * np.pi * MAX_TURNS)
    found = [no_crossings()]
    largest = float(geometry.half_width[-1])
    for sector in range(SLICES_OF_SIDE):
        angle = (sector + 0.5) * SLICE_ANGLE
        c, s = np.cos(angle), np.sin(angle)
        x0, y0 = centre_x * c + centre_y * s, centre_y * c - centre_x * s
        first = np.searchsorted(geometry.row_x, x0 - radius)
        n_rows = np.searchsorted(geometry.row_x, x0 + radius) - first
        n_rows = np.where((np.abs(y0) - radius < largest) & (last > 0.0), np.maximum(n_rows, 0), 0)
        which = np.repeat(np.arange(len(chosen)), n_rows)
        row = np.arange(len(which)) + np.repeat(first - np.cumsum(n_rows) + n_rows, n_rows)
        cosine = (geometry.row_x[row] - x0[which]) / radius[which]
        height = np.sqrt(np.maximum(1.0 - cosine**2, 0.0))
        for side in (1.0, -1.0):
            y = y0[which] + side * radius[which] * height
            keep = np.flatnonzero((np.abs(y) <= geometry.half_width[row]) & (height >= MIN_COSINE))
            i = which[keep]
            turned = np.mod(sense[i] * (np.arctan2(side * height[keep], cosine[keep]) + angle - start[i]), 2.0 * np.pi)
            along = -sense[i] * side * height[keep]
            for turn in range(MAX_TURNS):
                at = turned + 2.0 * np.pi * turn
                now = np.flatnonzero(at <= last[i])
                j = i[now]
                z = vz[j] + slope[j] * radius[j] * at[now]
                found.append(
                    Crossings(
                        particle=chosen[j],
                        slice_number=sector + np.where(z < 0.0, SLICES_OF_SIDE, 0),
                        row=row[keep[now]],
                        y=y[keep[now]],
                        z=z,
                        tan_y=sense[j] * cosine[keep[now]] / along[now],
                        tan_z=slope[j] / along[now],
                    )
                )
    return joined_crossings(found)


def _angle_to_pads(z: Floats, advance: Floats, half_length: float) -> Floats:
    """Angle of the helix until its z is that of the pads; negative outside of them."""
    way = np.where(advance >= 0.0, half_length - z, half_length + z)
    with np.errstate(divide="ignore"):
        return np.where(advance == 0.0, np.inf, way / np.abs(advance))


def _angle_to_exit(x: Floats, y: Floats, radius: Floats, start: Floats, sense: Floats) -> Floats:
    """Angle of the helix until it leaves the TPC through its outer wall."""
    distance = np.maximum(np.hypot(x, y), 1e-9)
    cosine = (OUTER_RADIUS**2 - distance**2 - radius**2) / (2.0 * distance * radius)
    half = np.arccos(np.clip(cosine, -1.0, 1.0))
    farthest = np.arctan2(y, x)
    # The particle is outside within `half` of the farthest point, so it leaves where this range begins for it.
    at = np.mod(sense * (farthest - start) - half, 2.0 * np.pi)
    return np.where(distance + radius > OUTER_RADIUS, at, np.inf)
