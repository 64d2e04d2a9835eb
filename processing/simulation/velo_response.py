"""What the VELO makes of charged particles: crossings with scattering, fired pixels, clusters and who made them.

Tracks are straight but for scattering in the foil and the sensors (the dipole's field is negligible in the VELO).
Units: mm, MeV.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.geometry.ideal_velo import (
    N_ROWS,
    PIXEL_PITCH,
    column_edges,
)
from hltnode.processing.geometry.velo import VeloGeometry
from hltnode.processing.simulation.pixel_clusters import COLUMN_SHIFT, SENSOR_SHIFT
from hltnode.processing.simulation.velo_particles import (
    FloatArray,
    Int64Array,
    Mask,
    ParticleColumns,
)

SENSOR_THICKNESS = 0.2  # mm of silicon that collects charge
HIT_EFFICIENCY = 0.995

# Scattering (Highland): material of a crossing in radiation lengths. A sensor with its chips and cooling, and the foil
# between beam and sensors, which tracks cross at small angles.
_SENSOR_X0 = 0.009
_FOIL_X0 = 0.010
_FOIL_RADIUS = 4.0
_HIGHLAND = 13.6  # MeV
# Some crossings scatter by much more than a Gaussian allows (single hard scatters): their part and how much wider.
_HARD_FRACTION, _HARD_FACTOR = 0.02, 5.0

# Charge spreads by this much (mm, standard deviation) on its way through the silicon, and is sampled at these fractions
# of the path; a pixel fires for each sample that falls on it.
_DIFFUSION = 0.0055
_SAMPLES = np.array([-0.42, -0.21, 0.0, 0.21, 0.42])

# Short-ranged electrons knocked out of the silicon fire pixels near the crossing, and electronics fires some at random.
_DELTA_PROBABILITY = 0.055
_DELTA_RANGE = 0.6
_NOISE_PER_EVENT = 4.0

# Every edge between columns is a multiple of half a pixel, so that a table by half pixels finds the column of a place.
_HALF_PIXEL = PIXEL_PITCH / 2
_COLUMN_OF_HALF_PIXEL = (
    np.searchsorted(
        column_edges(),
        (np.arange(round(column_edges()[-1] / _HALF_PIXEL)) + 0.5) * _HALF_PIXEL,
        side="right",
    )
    - 1
)


@dataclass(frozen=True, slots=True, eq=False)
class FiredPixels:
    """Sorted, distinct channel ids of the fired pixels (i64) of an event, and the particle of each crossing with the
    position in `channels` of the pixel at its middle; particles are in rising order."""

    channels: Int64Array
    particle: Int64Array
    middle: Int64Array


class VeloResponse:
    """The response of a VELO of given geometry; immutable, so one serves all events."""

    def __init__(self, geometry: VeloGeometry) -> None:
        t = geometry.ltg.astype(np.float64)
        self._order = np.argsort(t[:, 11], kind="stable")  # sensors by rising z
        t = t[self._order]
        self._z = t[:, 11]
        self._along_x = t[:, [0, 3]]  # global x, y of a step along the columns
        self._along_y = t[:, [1, 4]]  # and along the rows
        # Local coordinates of the line (a + b z) at the sensor, from the sensor's centre, are linear in
        # (ax, bx, ay, by, 1).
        self._size = np.array([column_edges()[-1], N_ROWS * PIXEL_PITCH])
        self._to_centred_x = self._line_coefficients(self._along_x, t, self._size[0] / 2)
        self._to_centred_y = self._line_coefficients(self._along_y, t, self._size[1] / 2)

    def _line_coefficients(self, step: FloatArray, t: FloatArray, centre: float) -> NDArray[np.float32]:
        offset = -(step[:, 0] * t[:, 9] + step[:, 1] * t[:, 10]) - centre
        return np.stack(
            [
                step[:, 0],
                step[:, 0] * self._z,
                step[:, 1],
                step[:, 1] * self._z,
                offset,
            ],
            dtype=np.float32,
        )

    def fire(self, rng: np.random.Generator, particles: ParticleColumns) -> FiredPixels:
        """Send particles through the detector; the momentum along z of none may be 0."""
        slopes = particles.momentum[:, :2] / particles.momentum[:, 2:]
        particle, sensor, local = self._straight_crossings(particles, slopes)
        local += self._scattering(rng, particles, slopes, particle, sensor)
        alive = self._is_inside(local) & (rng.random(len(particle)) < HIT_EFFICIENCY)
        particle, sensor, local = particle[alive], sensor[alive], local[alive]
        pixels = self._pixels_of_crossings(rng, slopes[particle], sensor, local)
        stray = self._stray_pixels(rng, sensor, local)
        channels, index = np.unique(np.concatenate([pixels.ravel(), stray]), return_inverse=True)
        return FiredPixels(
            channels,
            particle,
            index[: pixels.size].reshape(pixels.shape)[:, len(_SAMPLES) // 2],
        )

    def _straight_crossings(
        self, particles: ParticleColumns, slopes: FloatArray
    ) -> tuple[Int64Array, Int64Array, FloatArray]:
        """Particle, sensor (in z order) and local x, y of each crossing of a straight line, in the order of flight."""
        n = len(particles)
        z0 = particles.origin[:, 2]
        at_zero = particles.origin[:, :2] - slopes * z0[:, None]
        line = np.stack(
            [at_zero[:, 0], slopes[:, 0], at_zero[:, 1], slopes[:, 1], np.ones(n)],
            axis=1,
            dtype=np.float32,
        )
        # Not a matrix product: BLAS would start its threads for these small arrays.
        x, y = (np.einsum("nk,ks->ns", line, to_centred) for to_centred in (self._to_centred_x, self._to_centred_y))
        half_length, half_width = (self._size / 2).astype(np.float32)
        particle, sensor = np.nonzero((np.abs(x) < half_length) & (np.abs(y) < half_width))
        # The part of the line that is flown: from the origin on, to the end.
        z, start, end = self._z[sensor], z0[particle], particles.z_end[particle]
        flown = (z > np.minimum(start, end)) & (z < np.maximum(start, end))
        particle, sensor, backward = (
            particle[flown],
            sensor[flown],
            (end < start)[flown],
        )
        # np.nonzero lists the sensors of a particle by rising z; a backward one passes them the other way.
        order = np.argsort(particle * len(self._z) + np.where(backward, len(self._z) - 1 - sensor, sensor))
        particle, sensor = particle[order], sensor[order]
        local = np.stack([x[particle, sensor], y[particle, sensor]], axis=1, dtype=np.float64) + self._size / 2
        return particle, sensor, local

    def _scattering(
        self,
        rng: np.random.Generator,
        particles: ParticleColumns,
        slopes: FloatArray,
        particle: Int64Array,
        sensor: Int64Array,
    ) -> FloatArray:
        """Local displacement f64[n, 2] of each crossing by the kicks of the foil and the sensors passed before."""
        tx2_ty2 = (slopes**2).sum(axis=1)
        stretch = np.sqrt(1 + tx2_ty2)
        # Slopes change by more than the angle: by 1 + t^2 along the slope, by its root across; the mean of both serves.
        to_slope = (stretch * (1 + slopes.T**2) ** 0.5).T
        kick_size = _scattering_angle(particles.p, _SENSOR_X0 * stretch)[:, None] * to_slope
        hardness = np.where(rng.random(len(particle)) < _HARD_FRACTION, _HARD_FACTOR, 1.0)
        kicks = rng.normal(size=(len(particle), 2)) * kick_size[particle] * hardness[:, None]
        z = self._z[sensor]
        is_first = np.diff(particle, prepend=-1) != 0
        first_of = np.maximum.accumulate(np.where(is_first, np.arange(len(particle)), 0))
        # Sum of theta_j (z - z_j) over the crossings j passed before, from running sums over all particles.
        theta = np.cumsum(kicks, axis=0) - kicks
        theta_z = np.cumsum(kicks * z[:, None], axis=0) - kicks * z[:, None]
        displacement = z[:, None] * (theta - theta[first_of]) - (theta_z - theta_z[first_of])
        displacement += (
            self._foil_scattering(rng, particles, tx2_ty2, to_slope)[particle]
            * (z - self._foil_z(particles, tx2_ty2)[particle])[:, None]
        )
        return np.stack(
            [
                (displacement * self._along_x[sensor]).sum(axis=1),
                (displacement * self._along_y[sensor]).sum(axis=1),
            ],
            axis=1,
        )

    @staticmethod
    def _foil_z(particles: ParticleColumns, tx2_ty2: FloatArray) -> FloatArray:
        """z at which particles from near the beam reach the foil."""
        radius = np.hypot(particles.origin[:, 0], particles.origin[:, 1])
        flight = np.sign(particles.momentum[:, 2]) * (_FOIL_RADIUS - radius) / np.sqrt(tx2_ty2)
        z: FloatArray = particles.origin[:, 2] + flight
        return z

    @staticmethod
    def _foil_scattering(
        rng: np.random.Generator,
        particles: ParticleColumns,
        tx2_ty2: FloatArray,
        to_slope: FloatArray,
    ) -> FloatArray:
        """Kick f64[n, 2] of the slopes in the foil; none for particles that start outside it."""
        inside = np.hypot(particles.origin[:, 0], particles.origin[:, 1]) < _FOIL_RADIUS
        angle = _scattering_angle(particles.p, _FOIL_X0 * np.sqrt(1 + tx2_ty2)) * inside
        return rng.normal(size=to_slope.shape) * to_slope * angle[:, None]

    def _is_inside(self, local: FloatArray) -> Mask:
        inside: Mask = np.all((local > 0) & (local < self._size), axis=1)
        return inside

    def _channels(self, sensor: Int64Array, x: FloatArray, y: FloatArray) -> Int64Array:
        """Channel id of the pixel at each place of a sensor (in z order); beyond the edge, of the pixel at the edge."""
        half_pixel = np.clip((x / _HALF_PIXEL).astype(np.int64), 0, len(_COLUMN_OF_HALF_PIXEL) - 1)
        row = np.clip((y / PIXEL_PITCH).astype(np.int64), 0, N_ROWS - 1)
        channels: Int64Array = (
            self._order[sensor] << SENSOR_SHIFT | _COLUMN_OF_HALF_PIXEL[half_pixel] << COLUMN_SHIFT | row
        )
        return channels

    def _pixels_of_crossings(
        self,
        rng: np.random.Generator,
        slopes: FloatArray,
        sensor: Int64Array,
        local: FloatArray,
    ) -> Int64Array:
        """Channel ids i64[n, samples] of the pixels that collect the charge of each crossing."""
        path_x = (slopes * self._along_x[sensor]).sum(axis=1) * SENSOR_THICKNESS
        path_y = (slopes * self._along_y[sensor]).sum(axis=1) * SENSOR_THICKNESS
        spread = rng.standard_normal((2, len(sensor), len(_SAMPLES)), dtype=np.float32) * _DIFFUSION
        x = local[:, 0, None] + path_x[:, None] * _SAMPLES + spread[0]
        y = local[:, 1, None] + path_y[:, None] * _SAMPLES + spread[1]
        return self._channels(sensor[:, None], x, y)

    def _stray_pixels(self, rng: np.random.Generator, sensor: Int64Array, local: FloatArray) -> Int64Array:
        """Channel ids of pixels fired by knocked-out electrons and by noise."""
        delta = np.flatnonzero(rng.random(len(sensor)) < _DELTA_PROBABILITY)
        place = local[delta] + rng.normal(0.0, _DELTA_RANGE, (len(delta), 2))
        kept = self._is_inside(place)
        knocked = self._channels(sensor[delta[kept]], place[kept, 0], place[kept, 1])
        n_noise = int(rng.poisson(_NOISE_PER_EVENT))
        noise_sensor = rng.integers(0, len(self._z), n_noise)
        noise_place = rng.random((2, n_noise)) * self._size[:, None]
        return np.concatenate([knocked, self._channels(noise_sensor, noise_place[0], noise_place[1])])


def _scattering_angle(p: FloatArray, thickness: FloatArray) -> FloatArray:
    """Standard deviation (rad) of the projected angle behind matter of a thickness in radiation lengths (Highland)."""
    angle: FloatArray = _HIGHLAND / p * np.sqrt(thickness) * (1 + 0.038 * np.log(thickness))
    return angle
