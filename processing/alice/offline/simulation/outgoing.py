"""Particles that cross the rows outwards: helices with multiple scattering and energy loss, row by row.

All particles are followed at once, one row after the other.
"""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.detector_constants import KG_TO_CURVATURE, SLICE_ANGLE, SLICES_OF_SIDE
from hltnode.processing.alice.geometry.tpc_geometry import TpcGeometry
from hltnode.processing.alice.offline.simulation.crossings import Crossings, joined_crossings, no_crossings
from hltnode.processing.alice.offline.simulation.particles import Particles
from hltnode.protocol.alice.tpc_banks import TRUE_STATE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MIN_OUTGOING_PT = 0.2
"""GeV/c: softer particles turn back before the last row at 0.5 T (simulation.curling)."""
MAX_SINE = 0.95
"""A track with a larger |sin phi| in the frame of its slice is given up."""
GAS_RADIATION_LENGTH = 30_000.0
"""cm, of Ne-CO2-N2 at atmospheric pressure."""
GAS_LOSS = 1.6e-6
"""GeV/cm of a minimum ionising particle."""
WALL_X = 80.0
WALL_THICKNESS = 0.1
"""Beam pipe, silicon tracker and inner wall of the TPC together, in radiation lengths, as one sheet at WALL_X in cm."""
WALL_LOSS = 0.006
"""GeV of a minimum ionising particle in this sheet."""
_FROM_VERTEX = 60.0
"""cm: the slice of a particle from closer to the beam is that of its direction."""


def ionisation(beta: Floats) -> Floats:
    """Ionisation relative to that of a minimum ionising particle: 1 / beta^(5/3), of which 1 is the minimum."""
    return np.asarray(beta ** (-5.0 / 3.0))


class _Flight:
    """State of all particles, f64[particles]: place in the frame of a sector of 20 degrees, direction, momentum."""

    def __init__(self, particles: Particles, geometry: TpcGeometry, sector: Integers, cosine: Floats) -> None:
        self.geometry = geometry
        self.sector = sector
        angle = (sector + 0.5) * SLICE_ANGLE
        turn_c, turn_s = np.cos(angle), np.sin(angle)
        vx, vy, self.z = particles.vertex.T.copy()
        px, py, pz = particles.momentum.T
        pt = np.hypot(px, py)
        self.x, self.y = vx * turn_c + vy * turn_s, vy * turn_c - vx * turn_s
        self.sine = (py * turn_c - px * turn_s) / pt
        self.slope = pz / pt
        self.momentum = np.linalg.norm(particles.momentum, axis=1)
        self.charge = particles.charge
        self.mass = particles.mass
        self.alive = cosine > np.sqrt(1.0 - MAX_SINE**2)

    def kappa(self, which: Integers) -> Floats:
        """q/pT in c/GeV."""
        kappa: Floats = self.charge[which] * np.sqrt(1.0 + self.slope[which] ** 2) / self.momentum[which]
        return kappa

    def move(self, which: Integers, to_x: Floats | float) -> Floats:
        """Move to a plane of x in the frame of the sector; returns the length of the way. Ends those that cannot."""
        bz = self.geometry.field.bz(self.x[which] ** 2 + self.y[which] ** 2, self.z[which])
        curvature = -KG_TO_CURVATURE * bz * self.kappa(which)
        dx = to_x - self.x[which]
        sine = self.sine[which]
        end = sine + curvature * dx
        self.alive[which[np.abs(end) >= MAX_SINE]] = False
        end = np.clip(end, -MAX_SINE, MAX_SINE)
        tangent = (sine + end) / (np.sqrt(1.0 - sine**2) + np.sqrt(1.0 - end**2))
        chord = dx * np.sqrt(1.0 + tangent**2)
        half = np.clip(0.5 * curvature * chord, -1.0, 1.0)
        arc = chord * np.where(np.abs(half) < 1e-4, 1.0 + half**2 / 6.0, np.arcsin(half) / np.where(half == 0, 1, half))
        self.x[which] = to_x
        self.y[which] += dx * tangent
        self.z[which] += self.slope[which] * arc
        self.sine[which] = end
        length: Floats = arc * np.sqrt(1.0 + self.slope[which] ** 2)
        return length

    def pass_matter(self, rng: np.random.Generator, which: Integers, thickness: Floats, loss: Floats) -> None:
        """Scatter in a number of radiation lengths, and lose energy (GeV of a minimum ionising particle)."""
        momentum, mass = self.momentum[which], self.mass[which]
        energy = np.hypot(momentum, mass)
        beta = momentum / energy
        # V. L. Highland's formula without its logarithm, which does not add up over steps.
        angle = 0.0136 / (beta * momentum) * np.sqrt(np.maximum(thickness, 0.0))
        kicks = rng.standard_normal((2, len(which))) * angle
        widening = 1.0 + self.slope[which] ** 2
        sine = self.sine[which] + kicks[0] * np.sqrt(widening * (1.0 - self.sine[which] ** 2))
        self.sine[which] = np.clip(sine, -MAX_SINE, MAX_SINE)
        self.slope[which] += kicks[1] * widening
        energy -= np.maximum(loss, 0.0) * ionisation(beta)
        stopped = energy <= 1.05 * mass
        self.alive[which[stopped]] = False
        self.momentum[which] = np.sqrt(np.maximum(energy**2 - mass**2, (0.01 * mass) ** 2))

    def turn(self, which: Integers, half_width: float, to_x: float) -> None:
        """Change to the next sector where a particle has left its own, and return to the plane of x."""
        outside = which[np.abs(self.y[which]) > half_width]
        sign = np.sign(self.y[outside])
        self.sector[outside] = (self.sector[outside] + sign.astype(np.int64)) % SLICES_OF_SIDE
        c, s = np.cos(SLICE_ANGLE), np.sin(SLICE_ANGLE) * sign
        x, y, sine = self.x[outside], self.y[outside], self.sine[outside]
        self.x[outside], self.y[outside] = x * c + y * s, y * c - x * s
        turned = sine * c - np.sqrt(1.0 - sine**2) * s
        cosine = np.sqrt(1.0 - sine**2) * c + sine * s
        self.alive[outside[(np.abs(turned) >= MAX_SINE) | (cosine <= 0.0)]] = False
        self.sine[outside] = np.clip(turned, -MAX_SINE, MAX_SINE)
        self.move(outside, to_x)


def direction_sectors(particles: Particles) -> tuple[Integers, Floats]:
    """The sector in which each particle starts, and the cosine of its direction there, which is negative inwards."""
    vx, vy, _ = particles.vertex.T
    px, py, _ = particles.momentum.T
    direction = np.arctan2(py, px)
    place = np.where(np.hypot(vx, vy) < _FROM_VERTEX, direction, np.arctan2(vy, vx))
    sector = np.floor(np.mod(place, 2.0 * np.pi) / SLICE_ANGLE).astype(np.int64) % SLICES_OF_SIDE
    return sector, np.cos(direction - (sector + 0.5) * SLICE_ANGLE)


def is_outgoing(particles: Particles) -> NDArray[np.bool_]:
    """The particles that follow_outwards can follow; the others turn back."""
    pt = np.hypot(particles.momentum[:, 0], particles.momentum[:, 1])
    _, cosine = direction_sectors(particles)
    chosen: NDArray[np.bool_] = (particles.charge != 0.0) & (pt >= MIN_OUTGOING_PT) & (cosine > 0.5)
    return chosen


def follow_outwards(
    rng: np.random.Generator, particles: Particles, chosen: Integers, geometry: TpcGeometry
) -> tuple[Crossings, NDArray[np.void]]:
    """Crossings of the chosen particles, and TRUE_STATE[states] at the first row of each slice that they cross."""
    own = Particles(
        pdg=particles.pdg[chosen],
        mother=particles.mother[chosen],
        vertex=particles.vertex[chosen],
        momentum=particles.momentum[chosen],
        collision=particles.collision[chosen],
        origin=particles.origin[chosen],
    )
    flight = _Flight(own, geometry, *direction_sectors(own))
    inside = np.flatnonzero(flight.alive & (flight.x < WALL_X))
    flight.move(inside, WALL_X)
    way = np.sqrt(1.0 + flight.slope[inside] ** 2) / np.sqrt(1.0 - flight.sine[inside] ** 2)
    flight.pass_matter(rng, inside, WALL_THICKNESS * way, WALL_LOSS * way)
    last_slice = np.full(len(own), -1)
    found, states = [no_crossings()], [np.empty(0, TRUE_STATE)]
    for row, (x, half_width) in enumerate(zip(geometry.row_x.tolist(), geometry.half_width.tolist(), strict=True)):
        which = np.flatnonzero(flight.alive & (flight.x < x))
        way = flight.move(which, x)
        flight.pass_matter(rng, which, way / GAS_RADIATION_LENGTH, GAS_LOSS * way)
        flight.turn(which, half_width, x)
        flight.alive[which] &= np.abs(flight.z[which]) <= geometry.half_length
        which = which[flight.alive[which] & (np.abs(flight.y[which]) <= half_width)]
        slices = flight.sector[which] + np.where(flight.z[which] < 0.0, SLICES_OF_SIDE, 0)
        cosine = np.sqrt(1.0 - flight.sine[which] ** 2)
        found.append(
            Crossings(
                particle=chosen[which],
                slice_number=slices,
                row=np.full(len(which), row),
                y=flight.y[which],
                z=flight.z[which],
                tan_y=flight.sine[which] / cosine,
                tan_z=flight.slope[which] / cosine,
            )
        )
        enters = np.flatnonzero(slices != last_slice[which])
        last_slice[which] = slices
        at = which[enters]
        state = np.empty(len(at), TRUE_STATE)
        state["particle"], state["slice"], state["row"] = chosen[at], slices[enters], row
        state["y"], state["z"], state["sin_phi"] = flight.y[at], flight.z[at], flight.sine[at]
        state["lambda"], state["kappa"] = flight.slope[at], flight.kappa(at)
        states.append(state)
    return joined_crossings(found), np.concatenate(states)
