"""The response of the VELO to charged particles: crossings with scattering, fired pixels, clusters and their particles.

Tracks are bent a little by the fringe field of the dipole, and scatter in the foil and the sensors. Units: mm, MeV.
"""

from dataclasses import dataclass

import numpy as np

from hltnode.processing.lhcb.geometry.ideal_velo import (
    N_ROWS,
    PIXEL_PITCH,
    column_edges,
)
from hltnode.processing.lhcb.geometry.material import RF_FOIL, VELO_MODULE, scattering_angle, slabs
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_field import MEV_PER_T_MM, VeloField
from hltnode.processing.lhcb.offline.simulation import _native
from hltnode.processing.lhcb.offline.simulation.response.pixel_clusters import COLUMN_SHIFT, EVENT_SHIFT, SENSOR_SHIFT
from hltnode.processing.lhcb.offline.simulation.response.velo_charge import fired, released
from hltnode.processing.lhcb.offline.simulation.response.velo_foil import Foil
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.sorting import distinct_and_places

SENSOR_THICKNESS = 0.2  # mm of silicon that collects charge
HIT_EFFICIENCY = 0.995

# Some crossings scatter by much more than a Gaussian allows (single hard scatters): their fraction and how much wider.
_HARD_FRACTION, _HARD_FACTOR = 0.02, 5.0

(_MODULE_LOSS,) = {slab.energy_loss for slab in slabs() if slab.name == "VELO module"}

_FIELD_END = 770.0
"""mm, where the flight through the field behind the VELO begins."""

# Charge spreads by this much (mm, standard deviation) on its way through the silicon, and is sampled at these fractions
# of the path; a pixel fires for each sample that falls on it.
_DIFFUSION = 0.0055
_SAMPLES = np.array([-0.42, -0.21, 0.0, 0.21, 0.42])

# Short-ranged electrons knocked out of the silicon fire pixels near the crossing, and noise fires some at random.
_DELTA_PROBABILITY = 0.055
_DELTA_RANGE = 0.6
_NOISE_PER_EVENT = 4.0

# Every edge between columns is a multiple of half a pixel, so that a table by half pixels gives the column of a
# position.
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
    """Sorted, distinct `channels` i64 of the fired pixels of a chunk: channel ids with the event above (EVENT_SHIFT);
    and the `particle` of each crossing with the position in `channels` of the pixel at its middle, by rising particle.

    Behind the VELO, scattering and field have added `kick` f64[n_particles, 2] to the slopes of the particles, and to
    their x and y as seen from there z kick - `kick_z` f64[n_particles, 2] (mm); they have lost `energy_loss` (MeV).
    """

    channels: Int64Array
    particle: Int64Array
    middle: Int64Array
    kick: Float64Array
    kick_z: Float64Array
    energy_loss: Float64Array


class _Bend:
    """Bending of particles by the field: x at z, and the kick and kick_z of FiredPixels behind the VELO."""

    def __init__(self, field: VeloField, particles: ParticleColumns) -> None:
        px, _, pz = particles.momentum.T
        self._strength = -MEV_PER_T_MM * particles.charge / pz * (1.0 + (px / pz) ** 2)
        self._field, self._origin = field, particles.origin[:, 2]
        length = np.maximum(_FIELD_END - self._origin, 0.0)
        self.kick: Float64Array = self._strength * length * self._mean_field(0.5 * length)
        at_end = self._strength * length**2 / 2 * self._mean_field(length / 3.0)
        self.kick_z: Float64Array = _FIELD_END * self.kick - at_end

    def _mean_field(self, distance: Float64Array) -> Float64Array:
        return self._field.by + self._field.gradient * (self._origin + distance)

    def displacement(self, particle: Int64Array, z: Float64Array) -> Float64Array:
        """f64[n] in x (mm) of particles at z, from the tangent at their origin."""
        length = z - self._origin[particle]
        field = self._field.by + self._field.gradient * (self._origin[particle] + length / 3.0)
        moved: Float64Array = self._strength[particle] * length**2 / 2 * field
        return moved


class VeloResponse:
    """The response of a VELO of given geometry in a field; immutable, so that one can be used for all events."""

    def __init__(self, geometry: VeloGeometry, field: VeloField) -> None:
        self._field = field
        self._foil = Foil.of(geometry)
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

    def _line_coefficients(self, step: Float64Array, t: Float64Array, centre: float) -> Float64Array:
        offset = -(step[:, 0] * t[:, 9] + step[:, 1] * t[:, 10]) - centre
        return np.stack([step[:, 0], step[:, 0] * self._z, step[:, 1], step[:, 1] * self._z, offset], axis=1)

    def fire(self, random: EventRandom, event: Int64Array, particles: ParticleColumns) -> FiredPixels:
        """Move particles, by rising event, through the detector; no particle may have a momentum along z of 0."""
        slopes = particles.momentum[:, :2] / particles.momentum[:, 2:]
        particle, sensor, local = self._straight_crossings(particles, slopes)
        displacement, kick, kick_z = self._scattering(random, event, particles, slopes, particle, sensor)
        bend = _Bend(self._field, particles)
        displacement[:, 0] += bend.displacement(particle, self._z[sensor])
        n_crossed = np.bincount(particle, minlength=len(event))
        energy_loss = n_crossed * _MODULE_LOSS * particles.charge**2 * np.sqrt(1.0 + (slopes**2).sum(axis=1))
        kick[:, 0] += bend.kick
        kick_z[:, 0] += bend.kick_z
        local += np.stack(
            [(displacement * step[sensor]).sum(axis=1) for step in (self._along_x, self._along_y)], axis=1
        )
        detected = self._is_inside(local) & random.chance(event[particle], HIT_EFFICIENCY)
        particle, sensor, local = particle[detected], sensor[detected], local[detected]
        of_crossing = event[particle]
        pixels = self._pixels_of_crossings(random, of_crossing, slopes[particle], sensor, local)
        stray = self._stray_pixels(random, of_crossing, sensor, local)
        # Drawn last, so that events without such particles keep their random numbers.
        ionised = self._pixels_of_nuclei(
            random, of_crossing, particles.charge[particle], slopes[particle], sensor, local
        )
        channels, index = distinct_and_places(np.concatenate([pixels.ravel(), ionised, stray]))
        return FiredPixels(
            channels,
            particle,
            index[: pixels.size].reshape(pixels.shape)[:, len(_SAMPLES) // 2],
            kick,
            kick_z,
            energy_loss,
        )

    def _straight_crossings(
        self, particles: ParticleColumns, slopes: Float64Array
    ) -> tuple[Int64Array, Int64Array, Float64Array]:
        """Particle, sensor (in z order) and local x, y of each crossing of a straight line, in the order of flight."""
        z0 = particles.origin[:, 2]
        at_zero = particles.origin[:, :2] - slopes * z0[:, None]
        columns = (at_zero[:, 0], slopes[:, 0], at_zero[:, 1], slopes[:, 1], z0, particles.z_end)
        return _native.crossings(
            np.stack(columns, axis=1), self._z, self._to_centred_x, self._to_centred_y, *(self._size / 2).tolist()
        )

    def _scattering(
        self,
        random: EventRandom,
        event: Int64Array,
        particles: ParticleColumns,
        slopes: Float64Array,
        particle: Int64Array,
        sensor: Int64Array,
    ) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Displacement f64[n, 2] in x and y of each crossing by the kicks of the foil and the sensors passed before.

        Also, per particle f64[n_particles, 2]: the sum of its kicks, and of kick times z.
        """
        tx2_ty2 = (slopes**2).sum(axis=1)
        stretch = np.sqrt(1 + tx2_ty2)
        # Slopes change by more than the angle: by 1 + t^2 along the slope, by its root across; the mean of both is
        # used.
        to_slope = (stretch * (1 + slopes.T**2) ** 0.5).T
        kick_size = scattering_angle(particles.p, VELO_MODULE * stretch)[:, None] * to_slope
        of_crossing = event[particle]
        hardness = np.where(random.chance(of_crossing, _HARD_FRACTION), _HARD_FACTOR, 1.0)
        kicks = random.normal(of_crossing, 2) * kick_size[particle] * hardness[:, None]
        z = self._z[sensor]
        is_first = np.diff(particle, prepend=-1) != 0
        first_of = np.maximum.accumulate(np.where(is_first, np.arange(len(particle)), 0))
        # Sum of theta_j (z - z_j) over the crossings j passed before, from running sums over all particles.
        theta = np.cumsum(kicks, axis=0) - kicks
        theta_z = np.cumsum(kicks * z[:, None], axis=0) - kicks * z[:, None]
        displacement = z[:, None] * (theta - theta[first_of]) - (theta_z - theta_z[first_of])
        foil_kick = self._foil_scattering(random, event, particles, tx2_ty2, to_slope)
        foil_z = self._foil.z_of(particles)
        displacement += foil_kick[particle] * (z - foil_z[particle])[:, None]
        kick, kick_z = foil_kick, foil_kick * foil_z[:, None]
        for axis in range(2):
            kick[:, axis] += np.bincount(particle, kicks[:, axis], minlength=len(kick))
            kick_z[:, axis] += np.bincount(particle, kicks[:, axis] * z, minlength=len(kick))
        return displacement, kick, kick_z

    def _foil_scattering(
        self,
        random: EventRandom,
        event: Int64Array,
        particles: ParticleColumns,
        tx2_ty2: Float64Array,
        to_slope: Float64Array,
    ) -> Float64Array:
        """Kick f64[n, 2] of the slopes in the foil; none for particles that start outside it."""
        inside = self._foil.starts_inside(particles)
        angle = scattering_angle(particles.p, RF_FOIL * np.sqrt(1 + tx2_ty2)) * inside
        return random.normal(event, 2) * to_slope * angle[:, None]

    def _is_inside(self, local: Float64Array) -> Mask:
        inside: Mask = np.all((local > 0) & (local < self._size), axis=1)
        return inside

    def _channels(self, event: Int64Array, sensor: Int64Array, x: Float64Array, y: Float64Array) -> Int64Array:
        """Channel of the pixel at each place of a sensor (in z order); beyond the edge, of the pixel at the edge."""
        half_pixel = np.clip((x / _HALF_PIXEL).astype(np.int64), 0, len(_COLUMN_OF_HALF_PIXEL) - 1)
        row = np.clip((y / PIXEL_PITCH).astype(np.int64), 0, N_ROWS - 1)
        return self._channels_of(event, sensor, _COLUMN_OF_HALF_PIXEL[half_pixel], row)

    def _channels_of(self, event: Int64Array, sensor: Int64Array, column: Int64Array, row: Int64Array) -> Int64Array:
        channels: Int64Array = (
            (event << EVENT_SHIFT | self._order[sensor] << SENSOR_SHIFT) | column << COLUMN_SHIFT | row
        )
        return channels

    def _paths(self, slopes: Float64Array, sensor: Int64Array) -> Float64Array:
        """Way f64[n, 2] along columns and rows (mm) between the surfaces of a sensor."""
        ways = [(slopes * along[sensor]).sum(axis=1) * SENSOR_THICKNESS for along in (self._along_x, self._along_y)]
        return np.stack(ways, axis=1)

    def _pixels_of_crossings(
        self,
        random: EventRandom,
        event: Int64Array,
        slopes: Float64Array,
        sensor: Int64Array,
        local: Float64Array,
    ) -> Int64Array:
        """Channel ids i64[n, samples] of the pixels that collect the charge of each crossing."""
        path_x, path_y = self._paths(slopes, sensor).T
        n = len(_SAMPLES)
        spread = random.normal(event, 2 * n)
        x = local[:, 0, None] + path_x[:, None] * _SAMPLES + spread[:, :n] * _DIFFUSION
        y = local[:, 1, None] + path_y[:, None] * _SAMPLES + spread[:, n:] * _DIFFUSION
        return self._channels(event[:, None], sensor[:, None], x, y)

    def _pixels_of_nuclei(
        self,
        random: EventRandom,
        event: Int64Array,
        charge: Int64Array,
        slopes: Float64Array,
        sensor: Int64Array,
        local: Float64Array,
    ) -> Int64Array:
        """Channels of the pixels that the charge of nuclei fires; the crossings of other particles fire none here."""
        nuclei = np.flatnonzero(np.abs(charge) > 1)
        event, sensor = event[nuclei], sensor[nuclei]
        paths = self._paths(slopes[nuclei], sensor)
        points = released(random, event, charge[nuclei], local[nuclei], paths, SENSOR_THICKNESS, _SAMPLES)
        crossing, column, row = fired(points)
        return self._channels_of(event[crossing], sensor[crossing], column, row)

    def _stray_pixels(
        self, random: EventRandom, event: Int64Array, sensor: Int64Array, local: Float64Array
    ) -> Int64Array:
        """Channels of pixels fired by knocked-out electrons and by noise."""
        delta = np.flatnonzero(random.chance(event, _DELTA_PROBABILITY))
        place = local[delta] + _DELTA_RANGE * random.normal(event[delta], 2)
        kept = self._is_inside(place)
        of_delta = delta[kept]
        knocked = self._channels(event[of_delta], sensor[of_delta], place[kept, 0], place[kept, 1])
        n_noise = random.poisson(np.full((len(random), 1), _NOISE_PER_EVENT))[:, 0]
        noisy = np.repeat(np.arange(len(random)), n_noise)
        u = random.uniform(noisy, 3)
        noise = self._channels(
            noisy, (u[:, 0] * len(self._z)).astype(np.int64), u[:, 1] * self._size[0], u[:, 2] * self._size[1]
        )
        return np.concatenate([knocked, noise])
