"""The RF foil between the beam and the sensors of the VELO: where particles cross it.

Around a closed VELO it is a cylinder. The foil of an open VELO has moved with its halves: each has two planes, at 45
degrees to the x axis as its modules.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from hltnode.processing.lhcb.geometry.ideal_velo import N_MODULES, SENSORS_PER_MODULE, local_to_global
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.offline.arrays import Float64Array, Mask
from hltnode.processing.offline.particles.columns import ParticleColumns

FOIL_RADIUS = 4.0
"""mm: of the cylinder, and of the planes from the beam while the halves are closed."""
OPEN_FROM = 0.5
"""mm: halves that are nearer to their closed places count as closed."""


@dataclass(frozen=True, slots=True)
class Foil:
    """The foil of a VELO; planes: None while it is closed, else places (mm) of the planes in u = (x + y) / sqrt(2) and
    v = (y - x) / sqrt(2), f64[2, 2] by axis and by direction of the particles (to small and to large values)."""

    planes: Float64Array | None = None

    @classmethod
    def of(cls, geometry: VeloGeometry) -> Self:
        """The foil of a detector, by the mean places of the sensors of its halves."""
        moved = (geometry.ltg[:, 9:11].astype(np.float64) - local_to_global()[:, 9:11]).reshape(
            N_MODULES // 2, 2, SENSORS_PER_MODULE, 2
        )
        side_c, side_a = moved.mean(axis=(0, 2))
        if max(np.hypot(*side_c), np.hypot(*side_a)) < OPEN_FROM:
            return cls()
        (u_c, v_c), (u_a, v_a) = _turned(side_c), _turned(side_a)
        return cls(np.array([[u_c - FOIL_RADIUS, u_a + FOIL_RADIUS], [v_a - FOIL_RADIUS, v_c + FOIL_RADIUS]]))

    def starts_inside(self, particles: ParticleColumns) -> Mask:
        """Particles that start between the beam and the foil."""
        inside: Mask
        if self.planes is None:
            inside = np.hypot(particles.origin[:, 0], particles.origin[:, 1]) < FOIL_RADIUS
        else:
            start = _turned(particles.origin[:, :2])
            inside = np.all((start > self.planes[:, 0]) & (start < self.planes[:, 1]), axis=1)
        return inside

    def z_of(self, particles: ParticleColumns) -> Float64Array:
        """z (mm) at which particles that start inside reach the foil."""
        forward = np.sign(particles.momentum[:, 2])
        slopes = particles.momentum[:, :2] / particles.momentum[:, 2:]
        if self.planes is None:
            radius = np.hypot(particles.origin[:, 0], particles.origin[:, 1])
            flight = forward * (FOIL_RADIUS - radius) / np.sqrt((slopes**2).sum(axis=1))
        else:
            start, direction = _turned(particles.origin[:, :2]), _turned(slopes * forward[:, None])
            plane = np.where(direction < 0, self.planes[:, 0], self.planes[:, 1])
            steepest = np.where(direction == 0, np.inf, (plane - start) / np.where(direction == 0, 1.0, direction))
            flight = forward * steepest.min(axis=1)
        z: Float64Array = particles.origin[:, 2] + flight
        return z


def _turned(xy: Float64Array) -> Float64Array:
    """(u, v) of places or directions in the plane across the beam, f64[..., 2]."""
    x, y = xy[..., 0], xy[..., 1]
    turned: Float64Array = np.stack([x + y, y - x], axis=-1) / np.sqrt(2.0)
    return turned
