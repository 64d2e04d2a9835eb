"""The response of the electromagnetic calorimeter: showers over cells, sampling, noise. Units: mm, MeV.

The energy of a shower is spread over cells with the integral of a radial profile (A. Lednev, Nucl. Instrum. Meth. A 366
(1995) 292) over squares. The integrals are tabulated by the place in the cell. Resolution: LHCb, JINST 3 (2008) S08005,
section 6.2. Other numbers are tuned to the seven real events (docs/simulation.md).
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ecal import EcalGeometry
from hltnode.processing.lhcb.geometry.ideal_ecal import FIRST_CELLS, N_CELLS
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.protocol.lhcb.banks.ecal import MAX_ADC, MIN_ADC

# Resolution of the energy: stochastic term (at 1 GeV) and constant term.
SAMPLING_TERM, CONSTANT_TERM = 0.10, 0.01
NOISE = 1.28
"""ADC counts, standard deviation; the cells without energy of the seven events."""

# Depth of the maximum of an electromagnetic shower: X0 and critical energy of the modules.
_X0, _CRITICAL_ENERGY, _MAXIMUM = 16.9, 11.0, 0.5

# Minimum-ionising particles: energy at normal incidence, and the scale of its fluctuations.
_MIP, _MIP_SPREAD = 270.0, 0.13
_MIP_DEPTHS = 3
# Nuclear interaction lengths of the calorimeter. A hadron that interacts leaves this part of its energy at most, and
# the mean of the part falls with the depth that is left.
_INTERACTION_LENGTHS = 0.95
_HADRON_PART, _HADRON_SHAPE = 0.98, (1.4, 0.75)
# The electromagnetic part of hadronic showers rises with this power of the energy.
_HADRON_RISE = 0.1

# Radial profiles: fractions and radii of their components, mm.
_PROFILES = {
    False: ((0.85, 5.2), (0.15, 36.0)),
    True: ((0.62, 9.0), (0.38, 55.0)),
}
_HALF_WINDOW = {False: 2, True: 3}
_PLACES = 16
"""Places in a cell, along a side, for which the fractions are tabulated."""

# Soft particles that are not followed (products of showers in the beam pipe and around it): deposits for each charged
# particle of an event, their median energy and spread, and the fall of their density with the distance from the beam.
_SOFT_RATE, _SOFT_ENERGY, _SOFT_SPREAD = 2.4, 110.0, 1.1
_SOFT_RADII, _SOFT_POWER = (330.0, 4000.0), 0.8


class ShowerKind(IntEnum):
    """How a particle deposits energy."""

    ELECTROMAGNETIC = 0
    HADRON = 1
    MUON = 2


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Particles at the front of the calorimeter, by rising event.

    `event`, `kind` (ShowerKind), `pid` i64[n]; `row` i64[n]: of the particle in the caller's table, -1 for none; `x`,
    `y` (mm) at the front, slopes `tx`, `ty`, `energy` (MeV) f64[n].
    """

    event: Int64Array
    kind: Int64Array
    pid: Int64Array
    row: Int64Array
    x: Float64Array
    y: Float64Array
    tx: Float64Array
    ty: Float64Array
    energy: Float64Array

    def __len__(self) -> int:
        return len(self.event)

    def take(self, rows: Int64Array | Mask) -> "Arrivals":
        """The chosen rows."""
        return Arrivals(*(getattr(self, name)[rows] for name in Arrivals.__slots__))

    @staticmethod
    def join(parts: "list[Arrivals]") -> "Arrivals":
        """All rows of all parts, by rising event."""
        joined = Arrivals(*(np.concatenate([getattr(part, name) for part in parts]) for name in Arrivals.__slots__))
        return joined.take(np.argsort(joined.event, kind="stable"))


@dataclass(frozen=True, slots=True, eq=False)
class EcalResult:
    """`adc` i16[n_events, 6016]; of each arrival whether its shower is in the calorimeter, bool[n], and its `visible`
    energy without noise (MeV)."""

    adc: NDArray[np.int16]
    is_inside: Mask
    visible: Float64Array


class EcalResponse:
    """The response of a calorimeter of given geometry; immutable, so that one can be used for all events."""

    def __init__(self, geometry: EcalGeometry) -> None:
        self._geometry = geometry
        front, maximum, back = geometry.planes.astype(np.float64)
        self.front_z, self.maximum_z = (float(-plane[3] / plane[2]) for plane in (front, maximum))
        self._depth = float(-back[3] / back[2]) - self.front_z
        size = geometry.module_size / np.array([1.0, 2.0, 3.0])
        region = np.searchsorted(FIRST_CELLS[1:], np.arange(N_CELLS), side="right")
        # One more cell, for energy outside of the calorimeter.
        self._size = np.append(size[region], 1.0)
        self._region = np.append(region, 0)
        self._tables, self._windows = {}, {}
        x, y = geometry.centre.T.astype(np.float64)
        centre = np.stack(geometry.to_frame(x, y, self._middle_z(geometry)), axis=1)
        for is_hadron, half in _HALF_WINDOW.items():
            steps = np.arange(-half, half + 1)
            at_x, at_y = (part.ravel() for part in np.meshgrid(steps, steps))
            around = centre[:, None] + np.stack([at_x, at_y], axis=1) * self._size[:N_CELLS, None, None]
            cells = geometry.cells_of(around[..., 0], around[..., 1])
            self._windows[is_hadron] = np.append(cells, np.full((1, cells.shape[1]), N_CELLS), axis=0)
            self._tables[is_hadron] = np.stack([_fractions(_PROFILES[is_hadron], width, half) for width in size])

    def respond(self, random: EventRandom, arrivals: Arrivals, n_charged: Int64Array) -> EcalResult:
        """The ADC values of events; `n_charged` i64[n_events]: their charged particles."""
        n_events = len(random)
        it = arrivals
        normal, u = random.normal(it.event, 3), random.uniform(it.event, 3)
        is_em, is_hadron = it.kind == ShowerKind.ELECTROMAGNETIC, it.kind == ShowerKind.HADRON
        gev = np.maximum(it.energy, 1.0) / 1000.0
        em = it.energy * (1.0 + CONSTANT_TERM * normal[:, 0]) + 1000.0 * SAMPLING_TERM * np.sqrt(gev) * normal[:, 1]
        # A hadron interacts at this part of the depth; beyond 1 it passes.
        interacts_at = -np.log1p(-u[:, 0]) / _INTERACTION_LENGTHS
        showers = is_hadron & (interacts_at < 1.0)
        part = (
            _HADRON_PART
            * (gev / 10.0) ** _HADRON_RISE
            * (1.0 - np.minimum(interacts_at, 1.0)) ** 0.25
            * _part_of_hadrons(u[:, 1])
        )
        shower = np.where(is_em, np.maximum(em, 0.0), np.where(showers, it.energy * np.minimum(part, 1.0), 0.0))
        depth = np.where(
            is_em,
            np.clip(_X0 * (np.log(np.maximum(it.energy / _CRITICAL_ENERGY, 1.0)) + _MAXIMUM), 0.0, self._depth),
            np.minimum(interacts_at + 0.1, 1.0) * self._depth,
        )
        cell, x, y = self._place(it, depth)
        total = np.zeros((n_events, N_CELLS + 1))
        for hadrons, chosen in ((False, is_em), (True, showers)):
            rows = np.flatnonzero(chosen & (cell < N_CELLS) & (shower > 0.0))
            fractions = self._tables[hadrons][
                self._region[cell[rows]],
                _place_in(x[rows], self._size[cell[rows]]),
                _place_in(y[rows], self._size[cell[rows]]),
            ]
            np.add.at(
                total, (it.event[rows][:, None], self._windows[hadrons][cell[rows]]), fractions * shower[rows][:, None]
            )
        # Charged particles ionise on their way until they interact.
        stretch = np.sqrt(1.0 + it.tx**2 + it.ty**2)
        fluctuation = np.exp(_MIP_SPREAD * np.abs(normal[:, 2])) - 0.05
        charged = ~is_em & (it.pid != 2112) & (it.pid != 130)
        ionised = np.where(charged, np.minimum(_MIP * stretch * fluctuation, it.energy), 0.0)
        length = np.where(is_hadron, np.minimum(interacts_at, 1.0), 1.0)
        ionised *= length
        rows = np.flatnonzero(charged)
        for number in range(_MIP_DEPTHS):
            at = self._place(it.take(rows), (number + 0.5) / _MIP_DEPTHS * length[rows] * self._depth)[0]
            np.add.at(total, (it.event[rows], at), ionised[rows] / _MIP_DEPTHS)
        self._add_soft(random, total, n_charged)
        return EcalResult(self._digitised(random, total[:, :N_CELLS]), cell < N_CELLS, shower + ionised)

    @staticmethod
    def _middle_z(geometry: EcalGeometry) -> Float64Array:
        """z of the middle of each cell: where the z of the frame of the calorimeter is 0."""
        row = geometry.to_local[2].astype(np.float64)
        x, y = geometry.centre.T.astype(np.float64)
        z: Float64Array = -(row[0] * x + row[1] * y + row[3]) / row[2]
        return z

    def _place(self, it: Arrivals, depth: Float64Array) -> tuple[Int64Array, Float64Array, Float64Array]:
        """Cell at a depth behind the front, and the place in it along x and y (mm from its lower left corner)."""
        x, y = self._geometry.to_frame(it.x + depth * it.tx, it.y + depth * it.ty, self.front_z + depth)
        cell = self._geometry.cells_of(x, y)
        size = self._size[cell]
        return cell, x % size, y % size

    def _add_soft(self, random: EventRandom, total: Float64Array, n_charged: Int64Array) -> None:
        number = random.poisson(_SOFT_RATE * n_charged[:, None].astype(np.float64))[:, 0]
        event = np.repeat(np.arange(len(number)), number)
        u, normal = random.uniform(event, 2), random.normal(event)
        low, high = (radius**-_SOFT_POWER for radius in _SOFT_RADII)
        radius = (low + (high - low) * u[:, 0]) ** (-1.0 / _SOFT_POWER)
        angle = 2.0 * np.pi * u[:, 1]
        cell = self._geometry.cells_of(radius * np.cos(angle), radius * np.sin(angle))
        np.add.at(total, (event, cell), _SOFT_ENERGY * np.exp(_SOFT_SPREAD * normal))

    def _digitised(self, random: EventRandom, energy: Float64Array) -> NDArray[np.int16]:
        n_events = len(energy)
        noise = random.normal(np.repeat(np.arange(n_events), N_CELLS)).reshape(n_events, N_CELLS)
        counts = energy / self._geometry.gain + self._geometry.pedestal + NOISE * noise
        return np.clip(np.rint(counts), MIN_ADC, MAX_ADC).astype(np.int16)


def _part_of_hadrons(u: Float64Array) -> Float64Array:
    a, b = _HADRON_SHAPE
    # Kumaraswamy's distribution, which is nearly a beta distribution and has an inverse.
    part: Float64Array = (1.0 - (1.0 - u) ** (1.0 / b)) ** (1.0 / a)
    return part


def _place_in(place: Float64Array, size: Float64Array) -> Int64Array:
    return np.minimum((place / size * _PLACES).astype(np.int64), _PLACES - 1)


def _fractions(profile: tuple[tuple[float, float], ...], size: float, half: int) -> Float64Array:
    """f64[16, 16, n²]: fractions of a shower in the squares around it, row by row, for its places in the middle one."""
    place = (np.arange(_PLACES) + 0.5) / _PLACES * size
    edges = np.arange(-half, half + 2) * size - place[:, None]
    x, y = edges[:, None, None, :], edges[None, :, :, None]
    below = np.zeros(np.broadcast_shapes(x.shape, y.shape))
    for part, radius in profile:
        corner = np.arctan(x * y / (radius * np.sqrt(radius**2 + x**2 + y**2)))
        below += part / (2.0 * np.pi) * (np.arctan(x / radius) + np.arctan(y / radius) + corner)
    inside = np.diff(np.diff(below, axis=2), axis=3)
    return inside.reshape(_PLACES, _PLACES, -1)
