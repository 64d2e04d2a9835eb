"""Electrons in the detector: helices from layer to layer, with scattering and loss of energy in each of them.

All particles move at once, one layer a step. A layer scatters where a particle meets a sensor. Where two sensors
overlap, both have a hit, and the material counts once. Outside of sensors there is no material, and the target scatters
only what starts in it. There is no bremsstrahlung and no annihilation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.mu3e.detector_constants import (
    ELECTRON_MASS,
    LAYER_LADDERS,
    LAYER_RADII,
    LAYER_SENSORS,
    LAYER_THICKNESS,
    MEV_PER_MM,
    PIXEL_MM,
    RECURL_CENTRE,
    SPEED_OF_LIGHT,
)
from hltnode.processing.mu3e.geometry.sensor_table import CENTRE, DOWNSTREAM, UPSTREAM
from hltnode.protocol.mu3e.hit_banks import PIXELS

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

TARGET_THICKNESS = 0.0005
"""Radiation lengths between a stopped muon and the outside: 75 um of Mylar at a mean angle."""
ENERGY_LOSS = 0.05
"""MeV, mean of a layer at normal incidence: 0.03 g/cm^2 at 1.7 MeV cm^2/g. Losses have a gamma distribution of shape 4,
a choice of this simulation."""
MAX_CROSSINGS = 40
LEAST_TRANSVERSE = 1.0
"""MeV/c below which a particle is given up: it reaches no layer."""
_SAME_CROSSING = 12.0
"""mm of transverse path: the plane of a sensor and the cylinder of its layer are crossed within this."""
_HALF_SENSOR = PIXELS * PIXEL_MM / 2.0
_RADII = np.array(LAYER_RADII)
_LADDERS = np.array(LAYER_LADDERS)
_SENSORS = np.array(LAYER_SENSORS)
_FIRST = np.full((3, 4), -1)
_FIRST[CENTRE] = np.concatenate([[0], np.cumsum(_LADDERS * _SENSORS)[:-1]])
_CENTRAL = int((_LADDERS * _SENSORS).sum())
_OUTER = _LADDERS[2:] * _SENSORS[2:]
_FIRST[UPSTREAM, 2:] = _CENTRAL + np.array([0, _OUTER[0]])
_FIRST[DOWNSTREAM, 2:] = _CENTRAL + _OUTER.sum() + np.array([0, _OUTER[0]])
"""Number of the first sensor of each station and layer; -1 where a station has no such layer."""


@dataclass(frozen=True, slots=True)
class Crossings:
    """Crossings of sensors, in the order of steps: i64[crossings] each, but times in ns, f64, and `outward`, bool.

    particle: index. sensor, column, row: the pixel. layer: of the sensor. outward: before the particle has turned back,
    and in the middle of the detector. place: f64[crossings, 3], mm.
    """

    particle: Ints
    sensor: Ints
    column: Ints
    row: Ints
    layer: Ints
    time: Array
    outward: NDArray[np.bool_]
    place: Array


def highland(momentum: Array, thickness: Array) -> Array:
    """Standard deviation of the projected scattering angle of an electron (Particle Data Group, "Passage of particles
    through matter", eq. of Highland). momentum: MeV/c; thickness: radiation lengths."""
    beta = momentum / np.hypot(momentum, ELECTRON_MASS)
    angle: Array = 13.6 / (beta * momentum) * np.sqrt(thickness) * (1.0 + 0.038 * np.log(thickness / beta**2))
    return angle


def scattered(rng: np.random.Generator, momentum: Array, thickness: Array) -> Array:
    """Momenta f64[n, 3] turned by a random angle in each of two planes."""
    size = np.linalg.norm(momentum, axis=1)
    along = momentum / size[:, None]
    angles = highland(size, thickness)[:, None] * rng.normal(size=(len(size), 2))
    # Any vector that is not along the momentum makes a plane with it.
    helper = np.where(np.abs(along[:, 2:]) < 0.9, [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]])
    first = np.cross(along, helper)
    first /= np.linalg.norm(first, axis=1)[:, None]
    second = np.cross(along, first)
    turned = along + np.tan(angles[:, :1]) * first + np.tan(angles[:, 1:]) * second
    scaled: Array = turned * (size / np.linalg.norm(turned, axis=1))[:, None]
    return scaled


@dataclass(slots=True)
class _State:
    """Particles in flight: index, place in mm, momentum in MeV/c, charge, time in ns, last layer (-1: none), turned."""

    index: Ints
    place: Array
    momentum: Array
    charge: Array
    time: Array
    layer: Ints
    turned: NDArray[np.bool_]

    def only(self, kept: NDArray[np.bool_]) -> "_State":
        return _State(
            *(getattr(self, name)[kept] for name in ("index", "place", "momentum", "charge", "time", "layer", "turned"))
        )


def fly(rng: np.random.Generator, place: Array, momentum: Array, charge: Ints, *, scatter: bool = True) -> Crossings:
    """All crossings of particles that start at f64[n, 3] mm with f64[n, 3] MeV/c. scatter: with material."""
    n = len(place)
    state = _State(np.arange(n), place, momentum, charge.astype(float), np.zeros(n), np.full(n, -1), np.zeros(n, bool))
    # Slow positrons of Michel decays may be at rest, where no scattering is defined.
    state = state.only(np.hypot(momentum[:, 0], momentum[:, 1]) > LEAST_TRANSVERSE)
    if scatter:
        state.momentum = scattered(rng, state.momentum, np.full(len(state.index), TARGET_THICKNESS))
    made: list[Crossings] = [_no_crossings()]
    for _ in range(MAX_CROSSINGS):
        state = state.only(np.hypot(state.momentum[:, 0], state.momentum[:, 1]) > LEAST_TRANSVERSE)
        if not len(state.index):
            break
        state, crossings = _step(rng, state, scatter)
        made.extend(crossings)
    return Crossings(*(np.concatenate([getattr(each, name) for each in made]) for name in Crossings.__slots__))


def _no_crossings() -> Crossings:
    empty = np.empty(0, np.int64)
    return Crossings(empty, empty, empty, empty, empty, np.empty(0), np.empty(0, bool), np.empty((0, 3)))


def _step(rng: np.random.Generator, state: _State, scatter: bool) -> tuple[_State, list[Crossings]]:
    """Particles at their next layer, and the sensors that they cross there."""
    transverse = np.hypot(state.momentum[:, 0], state.momentum[:, 1])
    radius = transverse / MEV_PER_MM
    to_centre = state.charge[:, None] * np.column_stack([state.momentum[:, 1], -state.momentum[:, 0]])
    centre = state.place[:, :2] + to_centre / MEV_PER_MM
    turn, layer = _next_layer(state, centre, radius)
    found = np.isfinite(turn)
    state, centre, radius, turn, layer = state.only(found), centre[found], radius[found], turn[found], layer[found]
    slope = state.momentum[:, 2] / transverse[found]
    speed = SPEED_OF_LIGHT * transverse[found] / np.hypot(np.linalg.norm(state.momentum, axis=1), ELECTRON_MASS)
    start = np.arctan2(state.place[:, 1] - centre[:, 1], state.place[:, 0] - centre[:, 0])
    met = start - state.charge * turn
    at = centre + radius[:, None] * np.column_stack([np.cos(met), np.sin(met)])
    step = 2.0 * np.pi / _LADDERS[layer]
    around = np.arctan2(at[:, 1], at[:, 0])
    nearest = np.rint(around / step)
    beside = nearest + np.where(around - nearest * step >= 0.0, 1.0, -1.0)
    # Both candidates of a ladder, [n, 2].
    ladder = np.column_stack([nearest, beside])
    normal = ladder * step[:, None]
    depth = (_RADII[layer][:, None] - _along(centre, normal)) / radius[:, None]
    met_plane = np.abs(depth) < 1.0
    away = np.arccos(np.clip(depth, -1.0, 1.0))
    one, other = normal + away, normal - away
    further = np.where(np.abs(_wrapped(one - met[:, None])) < np.abs(_wrapped(other - met[:, None])), one, other)
    shift = _wrapped(further - met[:, None]) * -state.charge[:, None]
    whole = turn[:, None] + shift
    angle = start[:, None] - state.charge[:, None] * whole
    point = centre[:, None] + radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    across = -np.sin(normal) * point[..., 0] + np.cos(normal) * point[..., 1]
    height = state.place[:, 2, None] + slope[:, None] * radius[:, None] * whole
    station, sensor, row = _sensor(layer, ladder, height)
    close = np.abs(shift) * radius[:, None] < _SAME_CROSSING
    hit = met_plane & close & (whole > 0.0) & (np.abs(across) < _HALF_SENSOR) & (sensor >= 0)
    time = state.time[:, None] + radius[:, None] * whole / speed[:, None]
    first = np.where(hit.any(1), np.where(hit, whole, np.inf).min(1), turn)
    moved = _at(state, centre, radius, start, first, slope, speed, layer)
    inward = (moved.place[:, :2] * moved.momentum[:, :2]).sum(1) < 0.0
    moved.turned = state.turned | inward
    crossings = [
        Crossings(
            state.index[taken],
            sensor[taken, i],
            np.clip(np.floor(across[taken, i] / PIXEL_MM + PIXELS / 2), 0, PIXELS - 1).astype(np.int64),
            row[taken, i],
            layer[taken],
            time[taken, i],
            ~moved.turned[taken] & (station[taken, i] == CENTRE),
            np.column_stack([point[taken, i], height[taken, i]]),
        )
        for i in range(2)
        for taken in [hit[:, i]]
    ]
    if scatter:
        _pass_layer(rng, moved, hit.any(1), normal[np.arange(len(hit)), np.argmax(hit, axis=1)])
    furthest = RECURL_CENTRE + (_SENSORS.max() + 1) * _HALF_SENSOR
    return moved.only(np.abs(moved.place[:, 2]) < furthest), crossings


def _along(vectors: Array, angle: Array) -> Array:
    result: Array = vectors[:, :1] * np.cos(angle) + vectors[:, 1:] * np.sin(angle)
    return result


def _wrapped(angle: Array) -> Array:
    """Angles between -pi and pi."""
    result: Array = angle - 2.0 * np.pi * np.rint(angle / (2.0 * np.pi))
    return result


def _next_layer(state: _State, centre: Array, radius: Array) -> tuple[Array, Ints]:
    """Turning angle up to the next crossing of a cylinder, infinity without one, and its layer."""
    distance = np.maximum(np.hypot(centre[:, 0], centre[:, 1]), 1e-9)
    middle = np.arctan2(centre[:, 1], centre[:, 0])
    start = np.arctan2(state.place[:, 1] - centre[:, 1], state.place[:, 0] - centre[:, 0])
    cosine = (_RADII**2 - (distance**2 + radius**2)[:, None]) / (2.0 * distance * radius)[:, None]
    away = np.arccos(np.clip(cosine, -1.0, 1.0))
    turns = np.stack([middle[:, None] + away, middle[:, None] - away], axis=-1) - start[:, None, None]
    turns = np.mod(-state.charge[:, None, None] * turns, 2.0 * np.pi)
    same = (np.arange(4) == state.layer[:, None])[..., None] & (turns * radius[:, None, None] < _SAME_CROSSING)
    turns = np.where((np.abs(cosine) >= 1.0)[..., None] | same, np.inf, turns).min(-1)
    layer = turns.argmin(1)
    return turns[np.arange(len(turns)), layer], layer


def _sensor(layer: Ints, ladder: Array, height: Array) -> tuple[Ints, Ints, Ints]:
    """Station, sensor and row, i64[n, 2] each; sensor -1 where there is none at this height."""
    half = (_SENSORS[layer] * _HALF_SENSOR)[:, None]
    station = np.where(np.abs(height) < half, CENTRE, np.where(height < 0.0, UPSTREAM, DOWNSTREAM))
    middle = np.array([0.0, -RECURL_CENTRE, RECURL_CENTRE])[station]
    along = height - middle + half
    place = np.floor(along / (2.0 * _HALF_SENSOR))
    row = np.clip(np.floor((along - place * 2.0 * _HALF_SENSOR) / PIXEL_MM), 0, PIXELS - 1).astype(np.int64)
    first = _FIRST[station, layer[:, None]]
    on = (first >= 0) & (place >= 0) & (place < _SENSORS[layer][:, None])
    number = first + np.mod(ladder, _LADDERS[layer][:, None]) * _SENSORS[layer][:, None] + place
    return station, np.where(on, number, -1).astype(np.int64), row


def _at(
    state: _State, centre: Array, radius: Array, start: Array, turn: Array, slope: Array, speed: Array, layer: Ints
) -> _State:
    angle = start - state.charge * turn
    place = np.column_stack(
        [centre + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), state.place[:, 2]]
    )
    place[:, 2] += slope * radius * turn
    turned = -state.charge * turn
    cosine, sine = np.cos(turned), np.sin(turned)
    px, py, pz = state.momentum.T
    momentum = np.column_stack([px * cosine - py * sine, px * sine + py * cosine, pz])
    time = state.time + radius * turn / speed
    return _State(state.index, place, momentum, state.charge, time, layer, state.turned)


def _pass_layer(rng: np.random.Generator, state: _State, hit: NDArray[np.bool_], normal: Array) -> None:
    """Scattering and loss of energy where a sensor is hit."""
    momentum = state.momentum[hit]
    size = np.linalg.norm(momentum, axis=1)
    facing = np.abs(momentum[:, 0] * np.cos(normal[hit]) + momentum[:, 1] * np.sin(normal[hit])) / size
    # A grazing particle leaves the sensor at its edge.
    path = 1.0 / np.maximum(facing, 0.1)
    turned = scattered(rng, momentum, LAYER_THICKNESS * path)
    energy = np.hypot(size, ELECTRON_MASS) - rng.gamma(4.0, ENERGY_LOSS / 4.0, len(size)) * path
    left = np.sqrt(np.maximum(energy**2 - ELECTRON_MASS**2, 1e-6))
    state.momentum[hit] = turned * (left / size)[:, None]
