"""Made-up events for seeding and matching: particles from the collisions, their hits in SciFi and UT, and noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.tracks.matching.seeding_tables import SeedingTables
from tests.processing.lhcb.tracks.long.matching_chain import MatchingEvent
from tests.processing.lhcb.tracks.long.seeding_oracle import (
    UT_DX_DY,
    UT_KICK,
    UT_Z,
    Z0,
    Detector,
    Half,
    Line,
    UtHits,
    bend,
)

Array = NDArray[np.float64]

TABLES = SeedingTables.of(SciFiGeometry.builtin(), Magnet.builtin())
DETECTOR = Detector(TABLES.layer_z, TABLES.dx_dy, TABLES.dz_dy)
MEV_OF_KICK = 1230.0
"""p times the kick, about."""


@dataclass(frozen=True)
class Particle:
    """A VELO line and the SciFi parameters (a, b, c, y, ty) of the same particle."""

    line: Line
    parameters: Array


def particle(tx: float, ty: float, p: float, charge: int) -> Particle:
    """A particle from z = 0 without scattering."""
    line = Line(770.0 * tx, 770.0 * ty, tx, ty)
    kick = charge * MEV_OF_KICK / p
    plane = 5185.26 + 141.68 * abs(kick) + 247.6 * kick**2 + 8.35 * tx**2 - 1284.6 * ty**2 + 523.05 * kick * tx
    b = tx + kick
    a = tx * plane + b * (Z0 - plane)
    c = kick * (2.213e-5 - 4.33e-4 * ty**2 - 4.5e-5 * tx * b)
    y = ty * (Z0 + 1000.0 * kick * (6.66 * tx - 0.34 * kick))
    return Particle(line, np.array([a, b, c, y, ty * (1.0 + kick * (1.158 * tx - 0.588 * kick))]))


def random_particles(rng: np.random.Generator, n: int) -> list[Particle]:
    """Momenta of 3 to 50 GeV, inside the SciFi tracker."""
    chosen: list[Particle] = []
    while len(chosen) < n:
        slope, azimuth = rng.uniform(0.02, 0.25), rng.uniform(0.0, 2 * np.pi)
        momentum = float(np.exp(rng.uniform(np.log(3e3), np.log(5e4))))
        one = particle(slope * np.cos(azimuth), slope * np.sin(azimuth), momentum, int(rng.choice((-1, 1))))
        a, b, _, y, _ = one.parameters
        if abs(a + b * 900.0) < 2600.0 and 60.0 < abs(y) < 2100.0:
            chosen.append(one)
    return chosen


def scifi_hits(rng: np.random.Generator, one: Particle, efficiency: float) -> list[tuple[int, float]]:
    """(zone, x at y = 0) of the hits of a particle."""
    a, b, c, y0, ty = one.parameters
    hits = []
    for layer in range(12):
        z = DETECTOR.z[layer] + DETECTOR.dz_dy * (y0 + ty * (DETECTOR.z[layer] - Z0))
        y = y0 + ty * (z - Z0)
        x = a + b * (z - Z0) + c * float(bend(z)) - DETECTOR.dx_dy[layer] * y
        if rng.random() < efficiency:
            hits.append((2 * layer + int(y > 0), x + rng.normal(0.0, 0.08)))
    return hits


def toy_event(rng: np.random.Generator, n: int, noise: int = 10, efficiency: float = 0.96) -> MatchingEvent:
    """An event of `n` particles, with `noise` random hits in each SciFi zone and UT layer."""
    particles = random_particles(rng, n)
    hits = [hit for one in particles for hit in scifi_hits(rng, one, efficiency)]
    hits += [(zone, float(x)) for zone in range(24) for x in rng.uniform(-2600.0, 2600.0, noise)]
    hits.sort()
    ut: list[tuple[float, float, float, float]] = []
    for layer in range(4):
        for one in particles:
            distance = UT_Z[layer] - 770.0
            kick = one.parameters[1] - one.line.tx
            y = one.line.y + one.line.ty * distance
            x = one.line.x + one.line.tx * distance + UT_KICK[layer] * kick - UT_DX_DY[layer] * y
            ut.append((x + rng.normal(0.0, 0.05), UT_Z[layer], y - rng.uniform(0.0, 97.0), 0.0))
        ut += [(x, UT_Z[layer], y, 0.0) for x, y in rng.uniform(-600.0, 600.0, (noise, 2))]
    columns = np.array(ut or np.zeros((0, 4)))
    columns[:, 3] = columns[:, 2] + 97.28
    lines = [one.line for one in particles]
    return MatchingEvent(
        scifi_x=np.array([x for _, x in hits], np.float32),
        scifi_offset=np.searchsorted([zone for zone, _ in hits], np.arange(25)),
        velo={name: np.array([getattr(line, name) for line in lines], np.float32) for name in ("x", "y", "tx", "ty")}
        | {"backward": np.zeros(n, np.uint8)},
        ut={name: columns[:, i].astype(np.float32) for i, name in enumerate(("x", "z", "y_begin", "y_end"))},
    )


def halves_of(event: MatchingEvent) -> list[Half]:
    """The SciFi hits as input of the oracle."""
    result = []
    for half in range(2):
        ranges = [range(event.scifi_offset[2 * i + half], event.scifi_offset[2 * i + half + 1]) for i in range(12)]
        numbers = [np.array(numbers, np.int64) for numbers in ranges]
        result.append(Half([event.scifi_x[n].astype(np.float64) for n in numbers], numbers, bool(half)))
    return result


def lines_of(event: MatchingEvent) -> dict[int, Line]:
    """The forward VELO tracks as input of the oracle."""
    velo = event.velo
    return {
        i: Line(*(float(np.float32(velo[name][i])) for name in ("x", "y", "tx", "ty")))
        for i in np.flatnonzero(velo["backward"] == 0).tolist()
    }


def ut_hits_of(event: MatchingEvent) -> UtHits:
    """The UT hits as input of the oracle."""
    return UtHits(*(event.ut[name].astype(np.float64) for name in ("x", "z", "y_begin", "y_end")))
