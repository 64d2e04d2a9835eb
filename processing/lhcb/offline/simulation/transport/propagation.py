"""Transport of charged particles from the VELO through UT, magnet and SciFi: bending, scattering, energy loss.

Particles of many events are moved together from node to node in z: the layers of the detectors, the slabs of material,
and points between them where the field needs short steps. Units: mm, MeV, T.
"""

import itertools
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.magnet import MEV_PER_TESLA_MM, Magnet
from hltnode.processing.lhcb.geometry.material import Slab, is_hit, scattering_angle, slabs
from hltnode.processing.lhcb.offline.simulation import _native
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom

# Particles enter behind the last VELO module, and are followed to behind the SciFi (its last layer is at 9403 mm).
FIRST_Z, LAST_Z = 770.0, 9450.0

# Longest steps, in the magnet and in its fringe fields. With them, particles of 2 GeV and more end within 0.2 mm
# (median) of a fine Runge-Kutta integration of the same field (test_propagation.py).
_LONGEST_STEP, _LONGEST_STEP_OUTSIDE = 220.0, 330.0
_MAGNET_Z = (2700.0, 7700.0)
# Slabs this close to a layer represent its own material.
_SAME_PLACE = 25.0

# Quarter of the cross-section in which the field is tabulated, plane by plane.
_GRID_STEP = 100.0
_GRID_X, _GRID_Y = np.arange(0.0, 3601.0, _GRID_STEP), np.arange(0.0, 2801.0, _GRID_STEP)

# A particle that is turned by more than this, or slower (MeV), or beyond the grid, will not reach another layer.
_STEEPEST_SLOPE = 5.0
_SLOWEST = 1.0

# Some crossings scatter by much more than a normal distribution allows (single hard scatters): by this factor those
# whose normal number is above this, 2 %.
_HARD_ABOVE, _HARD_FACTOR = 2.05, 5.0

_LN2 = float(np.log(2.0))


@dataclass(slots=True, eq=False)
class Flights:
    """Moving particles, one row each, by rising event; f64[n] unless given otherwise.

    `event` i64[n]; `x`, `y` (mm) and slopes `tx`, `ty` at `z`; momentum `p` (MeV); `charge`; `mass` (MeV);
    `z_end`: where the particle stops. The propagation moves them in place, which needs contiguous columns; afterwards
    they are where they stopped.
    """

    event: Int64Array
    x: Float64Array
    y: Float64Array
    z: Float64Array
    tx: Float64Array
    ty: Float64Array
    p: Float64Array
    charge: Float64Array
    mass: Float64Array
    z_end: Float64Array

    def __len__(self) -> int:
        return len(self.event)

    def take(self, rows: Int64Array | Mask) -> Self:
        """The chosen rows."""
        return type(self)(*(getattr(self, name)[rows] for name in Flights.__slots__))

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        """All rows of all parts, part after part."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in Flights.__slots__))


class Radiation:
    """Photons that electrons radiate on their way, as flights without charge from where they are made; `p` is the
    energy (MeV)."""

    def __init__(self) -> None:
        self._parts: list[Flights] = []

    def add(self, electrons: Flights, energy: Float64Array) -> None:
        """One photon for each of `electrons`, along its flight."""
        none, endless = np.zeros(len(electrons)), np.full(len(electrons), np.inf)
        self._parts.append(replace(electrons, p=energy, charge=none, mass=none, z_end=endless))

    def joined(self) -> Flights:
        """All photons."""
        empty = Flights(np.empty(0, np.int64), *(np.empty(0) for _ in Flights.__slots__[1:]))
        return Flights.join([empty, *self._parts])


@dataclass(frozen=True, slots=True, eq=False)
class LayerStates:
    """Where flights cross the layers: x, y, tx, ty f64[n_layers, n] and whether they do, bool[n_layers, n]."""

    x: Float64Array
    y: Float64Array
    tx: Float64Array
    ty: Float64Array
    reached: Mask

    @classmethod
    def empty(cls, n_layers: int, n: int) -> Self:
        """No crossing yet."""
        x, y, tx, ty = np.zeros((4, n_layers, n))
        return cls(x, y, tx, ty, np.zeros((n_layers, n), dtype=bool))


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """From one node to the next, with the objects there: a layer (its number or -1) and a slab (or none).

    `field` f32[nx, ny, 3] (T): the field in the middle of the step on the grid.
    """

    first_z: float
    last_z: float
    layer: int
    slab: Slab | None
    field: NDArray[np.float32]


class Propagation:
    """Moves flights through the detector; immutable, so that one can be used for all events."""

    def __init__(self, magnet: Magnet, layer_z: Float64Array) -> None:
        """`layer_z` f64[n_layers]: the z of the layers whose crossings are computed, rising."""
        self.n_layers = len(layer_z)
        places = layer_z.tolist()
        nodes: dict[float, tuple[int, Slab | None]] = {z: (layer, None) for layer, z in enumerate(places)}
        for slab in slabs():
            if FIRST_Z < slab.z < LAST_Z and slab.side == 0:
                nearest = places[int(np.abs(layer_z - slab.z).argmin())]
                z = nearest if abs(nearest - slab.z) < _SAME_PLACE else slab.z
                nodes[z] = (nodes.get(z, (-1, None))[0], slab)
        nodes[LAST_Z] = (-1, None)
        ends = sorted(nodes)
        self._steps: list[_Step] = []
        for first, last in itertools.pairwise([FIRST_Z, *ends]):
            in_magnet = last > _MAGNET_Z[0] and first < _MAGNET_Z[1]
            n = int(np.ceil((last - first) / (_LONGEST_STEP if in_magnet else _LONGEST_STEP_OUTSIDE)))
            edges = np.linspace(first, last, n + 1).tolist()
            for a, b in itertools.pairwise(edges):
                layer, behind = nodes[last] if b == edges[-1] else (-1, None)
                grid = magnet.field(_GRID_X[:, None], _GRID_Y, 0.5 * (a + b))
                field = np.ascontiguousarray(np.moveaxis(grid, 0, -1), dtype=np.float32)
                self._steps.append(_Step(a, b, layer, behind, field))

    def propagate(
        self, random: EventRandom, flights: Flights, *, scattering: bool = True, radiation: Radiation | None = None
    ) -> LayerStates:
        """Move flights forward to where they stop, and record their crossings; without scattering, in vacuum.
        `radiation` gets the photons of the electrons."""
        it = flights
        states = LayerStates.empty(self.n_layers, len(it))
        moving = np.ones(len(it), dtype=bool)
        reached = np.empty(len(it), dtype=np.int64)
        for step in self._steps:
            n_there = _native.advance(
                *(it.x, it.y, it.z, it.tx, it.ty, it.p, it.charge, it.z_end),
                *(moving, reached, step.field),
                *(_GRID_STEP, step.first_z, step.last_z, MEV_PER_TESLA_MM, _STEEPEST_SLOPE),
            )
            there = reached[:n_there]
            if step.layer >= 0:
                for name in ("x", "y", "tx", "ty"):
                    getattr(states, name)[step.layer, there] = getattr(it, name)[there]
                states.reached[step.layer, there] = True
            if scattering and step.slab is not None:
                _cross(random, it, there, step.slab, radiation)
                moving[there[it.p[there] < _SLOWEST]] = False
        return states


def _cross(random: EventRandom, flights: Flights, there: Int64Array, slab: Slab, radiation: Radiation | None) -> None:
    """Scatter those flights in a slab, and subtract their energy loss."""
    hit = there[is_hit(slab, flights.x[there], flights.y[there])]
    tx, ty, p, event = flights.tx[hit], flights.ty[hit], flights.p[hit], flights.event[hit]
    stretch = np.sqrt(1.0 + tx * tx + ty * ty)
    beta_squared = p * p / (p * p + flights.mass[hit] ** 2)
    thickness = slab.thickness * stretch
    angle = scattering_angle(p, thickness, beta=np.sqrt(beta_squared)) * stretch
    normal = random.normal(event, 3)
    kick = normal[:, :2] * np.where(normal[:, 2:] > _HARD_ABOVE, _HARD_FACTOR, 1.0)
    flights.tx[hit] += kick[:, 0] * angle * np.sqrt(1.0 + tx * tx)
    flights.ty[hit] += kick[:, 1] * angle * np.sqrt(1.0 + ty * ty)
    p = np.maximum(p - slab.energy_loss * stretch / beta_squared, 0.0)
    electron = np.flatnonzero(flights.mass[hit] < 1.0)
    # Bremsstrahlung (Bethe, Heitler): a fraction exp(-g) is left after t radiation lengths, g of a gamma distribution.
    radiated = random.gamma(event[electron], thickness[electron] / _LN2)
    before = p[electron]
    p[electron] *= np.exp(-radiated)
    if radiation is not None:
        radiation.add(flights.take(hit[electron]), before - p[electron])
    flights.p[hit] = p
