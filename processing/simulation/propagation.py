"""Charged particles on their way from the VELO through UT, magnet and SciFi: bending, scattering, energy loss.

Particles of many events are moved together from node to node in z: the layers of the detectors, the slabs of material,
and points between them where the field needs short steps. Units: mm, MeV, T.
"""

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.geometry.magnet import MEV_PER_TESLA_MM, Magnet
from hltnode.processing.geometry.material import Slab, is_hit, scattering_angle, slabs
from hltnode.processing.simulation.event_random import EventRandom
from hltnode.processing.simulation.velo_particles import FloatArray, Int64Array, Mask

# Particles enter behind the last VELO module, and are given up behind the SciFi (its last layer stands at 9403 mm).
FIRST_Z, LAST_Z = 770.0, 9450.0

# Longest steps, in the magnet and in its fringe fields. With them, particles of 2 GeV and more end within 0.2 mm
# (median) of a fine Runge-Kutta integration of the same field (tests/processing/simulation/test_propagation.py).
_LONGEST_STEP, _LONGEST_STEP_OUTSIDE = 220.0, 330.0
_MAGNET_Z = (2700.0, 7700.0)
# Slabs so close to a layer stand for its own material.
_SAME_PLACE = 25.0

# Quarter of the cross-section in which the field is tabulated, plane by plane.
_GRID_STEP = 100.0
_GRID_X, _GRID_Y = np.arange(0.0, 3601.0, _GRID_STEP), np.arange(0.0, 2801.0, _GRID_STEP)

# A particle that is turned by more than this, or slower (MeV), or beyond the grid, will not reach another layer.
_STEEPEST_SLOPE = 5.0
_SLOWEST = 1.0

_LN2 = float(np.log(2.0))


@dataclass(slots=True, eq=False)
class Flights:
    """Particles on their way, one row each, by rising event; f64[n] but where told.

    `event` i64[n]; `x`, `y` (mm) and slopes `tx`, `ty` at `z`; momentum `p` (MeV); `charge`; `mass` (MeV);
    `z_end`: where the particle stops. The propagation moves them on: afterwards they are where they stopped.
    """

    event: Int64Array
    x: FloatArray
    y: FloatArray
    z: FloatArray
    tx: FloatArray
    ty: FloatArray
    p: FloatArray
    charge: FloatArray
    mass: FloatArray
    z_end: FloatArray

    def __len__(self) -> int:
        return len(self.event)

    def take(self, rows: Int64Array | Mask) -> Self:
        """The chosen rows."""
        return type(self)(*(getattr(self, name)[rows] for name in Flights.__slots__))

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        """All rows of all parts, part after part."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in Flights.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class LayerStates:
    """Where flights cross the layers: x, y, tx, ty f64[n_layers, n] and whether they do, bool[n_layers, n]."""

    x: FloatArray
    y: FloatArray
    tx: FloatArray
    ty: FloatArray
    reached: Mask

    @classmethod
    def empty(cls, n_layers: int, n: int) -> Self:
        """No crossing yet."""
        x, y, tx, ty = np.zeros((4, n_layers, n))
        return cls(x, y, tx, ty, np.zeros((n_layers, n), dtype=bool))


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """From one node to the next, with what stands there: a layer (its number or -1) and a slab (or none).

    `field` f32[nx * ny, 3]: the field in the middle of the step on the grid.
    """

    first_z: float
    last_z: float
    layer: int
    slab: Slab | None
    field: NDArray[np.float32]


class Propagation:
    """Moves flights through the detector; immutable, so one serves all events."""

    def __init__(self, magnet: Magnet, layer_z: FloatArray) -> None:
        """`layer_z` f64[n_layers]: the z of the layers in which crossings are wanted, rising."""
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
                field = np.moveaxis(grid, 0, -1).reshape(-1, 3).astype(np.float32)
                self._steps.append(_Step(a, b, layer, behind, field))

    def propagate(self, random: EventRandom, flights: Flights, *, scattering: bool = True) -> LayerStates:
        """Move flights forward to where they stop, and note their crossings; without scattering, in vacuum."""
        states = LayerStates.empty(self.n_layers, len(flights))
        alive = np.ones(len(flights), dtype=bool)
        for step in self._steps:
            rows = np.flatnonzero(alive & (flights.z < step.last_z) & (flights.z_end > flights.z))
            moving = flights.take(rows)
            _move(moving, step)
            lost = (np.abs(moving.tx) > _STEEPEST_SLOPE) | (np.abs(moving.ty) > _STEEPEST_SLOPE)
            lost |= (np.abs(moving.x) > _GRID_X[-1]) | (np.abs(moving.y) > _GRID_Y[-1])
            there = (moving.z >= step.last_z) & ~lost
            if step.layer >= 0:
                which = rows[there]
                for name in ("x", "y", "tx", "ty"):
                    getattr(states, name)[step.layer, which] = getattr(moving, name)[there]
                states.reached[step.layer, which] = True
            if scattering and step.slab is not None:
                _cross(random, moving, there, step.slab)
                lost |= moving.p < _SLOWEST
            for name in ("x", "y", "z", "tx", "ty", "p"):
                getattr(flights, name)[rows] = getattr(moving, name)
            alive[rows[lost]] = False
        return states


def _move(flights: Flights, step: _Step) -> None:
    """One step of the leap-frog kind: half the way, the whole kick by the field there, the other half."""
    length = np.minimum(step.last_z, flights.z_end) - np.maximum(step.first_z, flights.z)
    start = np.maximum(flights.z, step.first_z)
    # From where it is to the first node a particle flies straight: VELO and decays in it have no field to speak of.
    lead = start - flights.z
    x, y = flights.x + lead * flights.tx, flights.y + lead * flights.ty
    bx, by, bz = _interpolate(step.field, x + 0.5 * length * flights.tx, y + 0.5 * length * flights.ty)
    curvature = MEV_PER_TESLA_MM * flights.charge / flights.p * length
    kick_x, kick_y = _kick(flights.tx, flights.ty, bx, by, bz, curvature)
    kick_x, kick_y = _kick(flights.tx + 0.5 * kick_x, flights.ty + 0.5 * kick_y, bx, by, bz, curvature)
    limit = 2 * _STEEPEST_SLOPE
    tx = np.clip(flights.tx + kick_x, -limit, limit)
    ty = np.clip(flights.ty + kick_y, -limit, limit)
    flights.x = x + 0.5 * length * (flights.tx + tx)
    flights.y = y + 0.5 * length * (flights.ty + ty)
    flights.z = start + length
    flights.tx, flights.ty = tx, ty


def _kick(
    tx: FloatArray, ty: FloatArray, bx: FloatArray, by: FloatArray, bz: FloatArray, curvature: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Change of the slopes by the Lorentz force over a step."""
    strength = curvature * np.sqrt(1.0 + tx * tx + ty * ty)
    return (
        strength * (tx * ty * bx - (1.0 + tx * tx) * by + ty * bz),
        strength * ((1.0 + ty * ty) * bx - tx * ty * by - tx * bz),
    )


def _interpolate(field: NDArray[np.float32], x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The field at places, bilinear in the grid; the other three quarters of the cross-section mirror the first."""
    u = np.minimum(np.abs(x) * (1.0 / _GRID_STEP), len(_GRID_X) - 1.001)
    v = np.minimum(np.abs(y) * (1.0 / _GRID_STEP), len(_GRID_Y) - 1.001)
    i, j = u.astype(np.int64), v.astype(np.int64)
    u, v = (u - i).astype(np.float32)[:, None], (v - j).astype(np.float32)[:, None]
    corner = i * len(_GRID_Y) + j
    low, high = field.take(corner, 0), field.take(corner + len(_GRID_Y), 0)
    low += (field.take(corner + 1, 0) - low) * v
    high += (field.take(corner + len(_GRID_Y) + 1, 0) - high) * v
    low += (high - low) * u
    b = low.T.astype(np.float64)
    upper = np.sign(y)
    return b[0] * np.sign(x) * upper, b[1], b[2] * upper


def _cross(random: EventRandom, flights: Flights, there: Mask, slab: Slab) -> None:
    """Scatter those flights in a slab, and take the energy that they lose."""
    hit = np.flatnonzero(there & is_hit(slab, flights.x, flights.y))
    tx, ty, p, event = flights.tx[hit], flights.ty[hit], flights.p[hit], flights.event[hit]
    stretch = np.sqrt(1.0 + tx * tx + ty * ty)
    beta_squared = p * p / (p * p + flights.mass[hit] ** 2)
    thickness = slab.thickness * stretch
    angle = scattering_angle(p, thickness, beta=np.sqrt(beta_squared)) * stretch
    kick = random.normal(event, 2)
    flights.tx[hit] += kick[:, 0] * angle * np.sqrt(1.0 + tx * tx)
    flights.ty[hit] += kick[:, 1] * angle * np.sqrt(1.0 + ty * ty)
    p = np.maximum(p - slab.energy_loss * stretch / beta_squared, 0.0)
    electron = np.flatnonzero(flights.mass[hit] < 1.0)
    # Bremsstrahlung (Bethe, Heitler): exp(-g) is kept behind t radiation lengths, g of a gamma distribution.
    radiated = random.gamma(event[electron], thickness[electron] / _LN2)
    p[electron] *= np.exp(-radiated)
    flights.p[hit] = p
