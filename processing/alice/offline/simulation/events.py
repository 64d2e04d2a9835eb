"""One simulated event: collisions, tracks, clusters, truth."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.geometry.slices import global_from_local, side_sign
from hltnode.processing.alice.geometry.tpc_geometry import TpcGeometry
from hltnode.processing.alice.offline.simulation.clusters import Clusters, Response, clusters_of
from hltnode.processing.alice.offline.simulation.crossings import Crossings, joined_crossings
from hltnode.processing.alice.offline.simulation.curling import curl
from hltnode.processing.alice.offline.simulation.outgoing import follow_outwards, ionisation, is_outgoing
from hltnode.processing.alice.offline.simulation.particles import (
    VERTEX_SPREAD_Z,
    Particles,
    from_material,
    joined,
    primaries,
    v0_decays,
    with_daughters,
)
from hltnode.protocol.alice.tpc_banks import CLUSTER, TRUE_PARTICLE, Origin, numbers_of_places

Floats = NDArray[np.float64]

MAX_IONISATION = 20.0
MIN_DELTA_MOMENTUM, MAX_DELTA_MOMENTUM = 0.001, 0.03
"""GeV/c of delta electrons. Softer ones curl within a pad."""
MAX_DELTA_SLOPE = 0.5
"""|pz/pT| of delta electrons, which leave almost across the track."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What an event has on average.

    primaries: charged primaries of the triggered collision; spread: relative standard deviation of this number;
    temperature: GeV, of the spectrum of pT. collisions: mean number of other collisions; of_collision: their primaries.
    v0, material: V0 decays and particles from the material for each primary. deltas: delta electrons for each crossing
    of a row. response: what happens to clusters.
    """

    primaries: float
    spread: float
    temperature: float
    collisions: float
    of_collision: float
    v0: float
    material: float
    deltas: float
    response: Response


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedEvent:
    """Clusters with their truth.

    slice_number: i64[clusters], ascending, then by row. clusters: CLUSTER[clusters]. particle_of: i64[clusters], -1 for
    noise. particles: TRUE_PARTICLE[particles]. states: TRUE_STATE[states].
    """

    slice_number: NDArray[np.int64]
    clusters: NDArray[np.void]
    particle_of: NDArray[np.int64]
    particles: NDArray[np.void]
    states: NDArray[np.void]


def simulated_event(rng: np.random.Generator, shape: Shape, geometry: TpcGeometry) -> SimulatedEvent:
    """An event of this shape."""
    particles, shift_of_collision = _collisions(rng, shape, geometry)
    outgoing = is_outgoing(particles)
    crossings, states = follow_outwards(rng, particles, np.flatnonzero(outgoing), geometry)
    turning = np.flatnonzero(~outgoing & (particles.charge != 0.0))
    crossings = joined_crossings([crossings, curl(particles, turning, geometry)])
    deltas = delta_electrons(rng, particles, crossings, rng.poisson(shape.deltas * len(crossings)), geometry)
    everything = with_daughters([particles, deltas])
    of_deltas = curl(everything, np.arange(len(particles), len(everything)), geometry)
    shift = shift_of_collision[everything.collision]
    momentum = np.linalg.norm(everything.momentum, axis=1)
    relative = np.minimum(ionisation(momentum / np.hypot(momentum, everything.mass)), MAX_IONISATION)
    found = clusters_of(rng, joined_crossings([crossings, of_deltas]), shift, relative, geometry, shape.response)
    states["z"] += (side_sign(states["slice"]) * shift[states["particle"]]).astype(np.float32)
    clusters, in_range = packed(found)
    found = found.chosen(in_range)
    return SimulatedEvent(
        slice_number=found.slice_number,
        clusters=clusters[in_range],
        particle_of=found.particle,
        particles=true_particles(everything),
        states=states,
    )


def _collisions(rng: np.random.Generator, shape: Shape, geometry: TpcGeometry) -> tuple[Particles, Floats]:
    """Particles of the triggered collision and of others, and the shift in drift of each collision in cm."""
    others = int(rng.poisson(shape.collisions))
    shifts = np.concatenate([[0.0], rng.uniform(-geometry.half_length, geometry.half_length, others)])
    several = []
    for collision in range(others + 1):
        mean = shape.of_collision if collision else shape.primaries
        scale = rng.gamma(1.0 / shape.spread**2, shape.spread**2)
        n = int(rng.poisson(mean * scale))
        place = float(rng.normal(0.0, VERTEX_SPREAD_Z))
        several += [
            primaries(rng, n, shape.temperature, place, collision),
            v0_decays(rng, int(rng.poisson(shape.v0 * n)), shape.temperature, place, collision),
            from_material(rng, int(rng.poisson(shape.material * n)), place, collision),
        ]
    return joined(several), shifts


def delta_electrons(
    rng: np.random.Generator, particles: Particles, crossings: Crossings, n: int, geometry: TpcGeometry
) -> Particles:
    """n delta electrons that begin at crossings of rows. Their momenta have the density 1 / momentum^2.

    Their mothers are places in `particles`.
    """
    n = n if len(crossings) else 0
    at = crossings.chosen(rng.integers(0, max(len(crossings), 1), n))
    x, y = global_from_local(at.slice_number, geometry.row_x[at.row], at.y)
    inverse = rng.uniform(1.0 / MAX_DELTA_MOMENTUM, 1.0 / MIN_DELTA_MOMENTUM, n)
    phi = rng.uniform(0.0, 2.0 * np.pi, n)
    pt = 1.0 / inverse
    slope = rng.uniform(-MAX_DELTA_SLOPE, MAX_DELTA_SLOPE, n)
    return Particles(
        pdg=np.full(n, 11),
        mother=at.particle,
        vertex=np.column_stack([x, y, at.z]),
        momentum=np.column_stack([pt * np.cos(phi), pt * np.sin(phi), pt * slope]),
        collision=particles.collision[at.particle],
        origin=np.full(n, int(Origin.DELTA)),
    )


def packed(found: Clusters) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """CLUSTER[clusters] in the scales of the bank, and bool[clusters] (False: a place did not fit and was limited)."""
    y, drift = numbers_of_places(found.y, found.drift)
    in_range = (y >= 0) & (y <= 0xFFFF) & (drift >= 0) & (drift <= 0xFFFF)
    clusters = np.empty(len(found), CLUSTER)
    clusters["row"], clusters["y"], clusters["z"] = found.row, np.clip(y, 0, 0xFFFF), np.clip(drift, 0, 0xFFFF)
    clusters["charge"] = np.clip(np.rint(found.charge), 0, 0xFFFF)
    return clusters, in_range


def true_particles(particles: Particles) -> NDArray[np.void]:
    """TRUE_PARTICLE[particles]."""
    truth = np.empty(len(particles), TRUE_PARTICLE)
    for name in ("pdg", "mother", "vertex", "momentum", "collision", "origin"):
        truth[name] = getattr(particles, name)
    return truth
