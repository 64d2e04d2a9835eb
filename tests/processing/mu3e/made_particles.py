"""Hits of particles that are given, without scattering and loss of energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.mu3e.detector_constants import MEV_PER_MM
from hltnode.processing.mu3e.offline.simulation.flight import fly
from hltnode.protocol.mu3e.hit_banks import HIT


@dataclass(frozen=True, slots=True)
class MadeParticle:
    """size: MeV/c. direction_at_first_hit: f64[3], a unit vector."""

    size: float
    direction_at_first_hit: NDArray[np.float64]


def one_particle(
    momentum: Sequence[float],
    charge: int,
    start: Sequence[float] = (5.0, -3.0, 30.0),
    *,
    time: int = 100,
    layers: Sequence[int] | None = None,
    most: int = 40,
) -> tuple[NDArray[np.void], MadeParticle]:
    """HIT[hits] of a particle that starts at a place in mm with MeV/c, all at one time in ns.

    layers: keep one hit of each of these, outwards; None: the first `most` hits, recurling ones too.
    """
    place, of = np.array([start], float), np.array([momentum], float)
    made = fly(np.random.default_rng(1), place, of, np.array([charge]), scatter=False)
    kept = np.arange(min(len(made.particle), most))
    if layers is not None:
        kept = np.array([np.flatnonzero(made.outward & (made.layer == layer))[0] for layer in layers])
    hits = np.zeros(len(kept), HIT)
    hits["sensor"], hits["column"], hits["row"] = made.sensor[kept], made.column[kept], made.row[kept]
    hits["time"] = time
    first = made.place[np.flatnonzero(made.outward & (made.layer == 0))[0]]
    px, py, pz = of[0]
    centre = np.array(start[:2]) + charge * np.array([py, -px]) / MEV_PER_MM
    one, other = np.array(start[:2]) - centre, first[:2] - centre
    turned = np.arctan2(one[0] * other[1] - one[1] * other[0], one @ other)
    cosine, sine = np.cos(turned), np.sin(turned)
    size = float(np.linalg.norm(of))
    direction = np.array([px * cosine - py * sine, px * sine + py * cosine, pz]) / size
    return hits, MadeParticle(size, direction)
