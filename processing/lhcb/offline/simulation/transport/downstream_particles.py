"""Particles produced behind the VELO: decays in flight, hadronic interactions, conversions and soft electrons.

Rates, momenta and origins of the products of photons and neutral hadrons are tables by region, taken from the truth of
the seven real simulated events. Units: mm, MeV.
"""

from dataclasses import dataclass, replace

import numpy as np

from hltnode.processing.lhcb.geometry.ideal_scifi import STATION_Z
from hltnode.processing.lhcb.geometry.material import slabs
from hltnode.processing.lhcb.offline.simulation.transport.propagation import FIRST_Z, LAST_Z, Flights, LayerStates
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.particles.decays import MASS

_PION, _KAON, _PROTON, _ELECTRON, _MUON, _PHOTON, _NEUTRON = 211, 321, 2212, 11, 13, 22, 2112

# c tau (mm) of particles that decay in flight, and the momentum of the muon in its rest frame (MeV) and branching ratio
# (PDG).
_DECAYS_IN_FLIGHT = {_PION: (7804.5, 29.79, 1.0), _KAON: (3711.0, 235.5, 0.636)}

# Nuclear interaction lengths per radiation length of the material that hadrons cross (plastics, carbon, silicon).
_INTERACTION_PER_X0 = 0.35
_SLAB_Z, _SLAB_THICKNESS = np.array(
    [(slab.z, slab.thickness) for slab in slabs() if FIRST_Z < slab.z < LAST_Z and slab.side == 0]
).T

# Hadrons at these polar angles graze the beam pipe: fraction that interacts there, where (its flanges before the SciFi,
# or before the UT and in the magnet), and the fraction of these at the flanges.
_GRAZING, _GRAZING_PART = (0.0085, 0.0135), 0.5
_FLANGES, _PIPE_Z, _AT_FLANGES = (6850.0, 7350.0), (1200.0, 3800.0), 0.6

# Electrons knocked out near a layer (half depth of a module, mm) that leave it: their fraction of the crossings and
# lowest energy (MeV).
_KNOCK_ON_PART, _KNOCK_ON_LEAST, _KNOCK_ON_DEPTH = 0.032, 3.0, 20.0

# Fraction of protons among slow hadrons, and the charged products of a hadronic interaction.
_PROTONS = 0.4
_PRODUCTS, _PRODUCT_P, _PRODUCT_SPREAD, _PRODUCT_ANGLE = 2.2, 1200.0, 1.0, 18.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Particles produced between two z without a charged mother.

    `rate` per real event; `electrons`: their fraction, the others are hadrons; `p` (MeV) median and `spread` (of its
    logarithm); `angle` median (deg) to the line from the collision; `on_pipe`: fraction from the beam pipe (or its
    flanges), the others are spread like particles; `length`: mean length of flight (mm), endless if not given. A shower
    gives `shower` particles on average, from one point. Particles turned back by the magnet enter at any x:
    `turned_back`.
    """

    first_z: float = 0.0
    last_z: float = 0.0
    rate: float
    electrons: float
    p: float
    spread: float
    angle: float
    on_pipe: float = 0.05
    length: float = np.inf
    shower: float = 1.0
    turned_back: bool = False


_PART_OF_STATION = (1.12, 0.95, 0.76)


def _in_scifi(source: Source) -> tuple[Source, ...]:
    """Equal sources in all three stations, in frames before them and modules; their rate falls from station to
    station."""
    return tuple(
        replace(source, first_z=z - 230.0, last_z=z + 70.0, rate=part * source.rate)
        for z, part in zip(STATION_Z, _PART_OF_STATION, strict=True)
    )


# A real minimum-bias event has about this number of charged particles with |eta| > 0.8, and these numbers of each kind.
_CHARGED = 294.0
SOURCES = (
    # conversions behind the VELO: RICH1 and the beam pipe before it
    Source(first_z=800, last_z=2250, rate=34, electrons=1.0, p=230, spread=1.2, angle=1.2, on_pipe=0.15, shower=2),
    Source(first_z=800, last_z=2250, rate=18, electrons=0.0, p=2200, spread=1.1, angle=7, on_pipe=0.2),
    # UT, and particles turned back into it by the magnet: from the beam pipe behind it, in showers
    Source(
        first_z=2290, last_z=2640, rate=25, electrons=1.0, p=9, spread=1.6, angle=25, on_pipe=0.1, length=150,
        shower=1.5,
    ),
    Source(
        first_z=2150, last_z=2632, rate=95, electrons=1.0, p=130, spread=0.8, angle=55, on_pipe=0.0, shower=4,
        turned_back=True,
    ),
    Source(first_z=2250, last_z=2660, rate=12, electrons=0.0, p=900, spread=1.2, angle=15, on_pipe=0.2),
    # beam pipe in the magnet
    Source(first_z=2700, last_z=4000, rate=60, electrons=1.0, p=200, spread=2.0, angle=0.6, on_pipe=1.0, shower=2),
    Source(first_z=2700, last_z=5500, rate=16, electrons=0.0, p=3200, spread=1.1, angle=6, on_pipe=0.6),
    # its supports and flanges before the SciFi
    Source(first_z=6850, last_z=7250, rate=52, electrons=1.0, p=190, spread=1.3, angle=0.8, on_pipe=1.0, shower=3),
    Source(first_z=6850, last_z=7350, rate=20, electrons=0.0, p=1050, spread=1.1, angle=15, on_pipe=1.0, shower=2),
    Source(first_z=7350, last_z=7690, rate=26, electrons=1.0, p=25, spread=1.0, angle=20, length=500, shower=2),
    *_in_scifi(Source(rate=66, electrons=1.0, p=5, spread=0.9, angle=25, length=130, shower=1.5)),
    *_in_scifi(Source(rate=27, electrons=1.0, p=30, spread=0.6, angle=30, length=700, shower=3)),
    *_in_scifi(Source(rate=15, electrons=1.0, p=160, spread=1.0, angle=12)),
    *_in_scifi(Source(rate=13, electrons=0.0, p=480, spread=0.8, angle=35)),
)  # fmt: skip
_PIPE_SLOPE = (0.0100, 0.0125)
_ANGLE_SPREAD = 1.3
_STEEPEST, _STEEPEST_SLOPE = np.radians(76.0), 4.7
# Polar angles of sources that are spread like particles: lowest angle, range, power of a uniform number.
_LEAST_SLOPE, _SLOPE_RANGE, _SLOPE_POWER = 0.014, 0.34, 1.8
# Half the width of the UT, and the mean |y| of particles turned back into it (mm).
_TURNED_BACK_X, _TURNED_BACK_Y = 800.0, 160.0
_BEHIND_UT = 2660.0
_LEAST_P = 0.1
"""MeV, of a particle that the VELO has all but stopped."""


def background(
    random: EventRandom, n_charged: Int64Array, positions: list[Float64Array]
) -> tuple[Int64Array, ParticleColumns]:
    """Event (rising) and particles of the sources, for events of `n_charged` particles from collisions [n, 3] each."""
    table = {name: np.array([getattr(source, name) for source in SOURCES]) for name in Source.__slots__}
    counts = random.poisson(n_charged[:, None] / _CHARGED * (table["rate"] / table["shower"]))
    which = np.repeat(np.tile(np.arange(len(SOURCES)), len(random)), counts.ravel())
    event = np.repeat(np.arange(len(random)), counts.sum(axis=1))
    place = random.uniform(event, 5)
    # The number of particles of a shower is geometrically distributed.
    with np.errstate(divide="ignore"):
        number = 1 + (np.log1p(-place[:, 4]) / np.log1p(-1.0 / table["shower"][which])).astype(np.int64)
    which, event, place = np.repeat(which, number), np.repeat(event, number), np.repeat(place, number, axis=0)
    first_z, last_z, electrons, median, spread, angle, on_pipe, length, turned_back = (
        table[name][which]
        for name in ("first_z", "last_z", "electrons", "p", "spread", "angle", "on_pipe", "length", "turned_back")
    )
    u = random.uniform(event, 6)
    normal = random.normal(event, 2)
    z = first_z + place[:, 0] * (last_z - first_z)
    slope = np.where(
        place[:, 2] < on_pipe,
        _PIPE_SLOPE[0] + place[:, 1] * (_PIPE_SLOPE[1] - _PIPE_SLOPE[0]),
        _LEAST_SLOPE + _SLOPE_RANGE * place[:, 1] ** _SLOPE_POWER,
    )
    phi = 2 * np.pi * place[:, 3]
    direction = np.stack([slope * np.cos(phi), slope * np.sin(phi), np.ones(len(event))], axis=1)
    start = np.concatenate([_first_collision(places) for places in positions])[event]
    origin = np.array([0.0, 0.0, 1.0]) * start + direction * (z - start[:, 2])[:, None]
    back = np.flatnonzero(turned_back)
    origin[back, 0] = _TURNED_BACK_X * (2 * u[back, 4] - 1)
    origin[back, 1] = _TURNED_BACK_Y * np.log(1 - u[back, 5]) * np.where(place[back, 2] < 0.5, -1, 1)
    p = median * np.exp(spread * normal[:, 0])
    tilt = np.minimum(np.radians(angle) * np.exp(_ANGLE_SPREAD * normal[:, 1]), _STEEPEST)
    momentum = p[:, None] * _tilted(direction, tilt, 2 * np.pi * u[:, 0])
    is_electron = u[:, 1] < electrons
    is_proton = u[:, 3] < _PROTONS
    # Protons are knocked out of nuclei, antiprotons are not.
    charge = np.where((u[:, 2] < 0.5) & (is_electron | ~is_proton), -1, 1)
    pid = np.where(is_electron, -_ELECTRON, np.where(is_proton, _PROTON, _PION)) * charge
    mother = np.where(is_electron, _PHOTON, _NEUTRON)
    particles = ParticleColumns.of(origin, momentum, pid, charge, mother=mother)
    particles.z_end[:] = np.where(turned_back, _BEHIND_UT, z + length * random.exponential(event))
    return event, particles


def flights_of(
    event: Int64Array, particles: ParticleColumns, kick: Float64Array, kick_z: Float64Array, energy_loss: Float64Array
) -> tuple[Int64Array, Flights]:
    """The rows of the particles that leave the VELO forwards (or are produced behind it), and their flights.

    `kick`, `kick_z` f64[n, 2] and `energy_loss` f64[n] as the VELO's response gives them, 0 for particles produced
    behind it.
    """
    px, py, pz = particles.momentum.T
    z = particles.origin[:, 2]
    steepest = np.where(z < _BEFORE_UT, _ACCEPTANCE, _STEEPEST_SLOPE) * pz
    rows = np.flatnonzero(
        (particles.z_end > FIRST_Z) & (z < LAST_Z) & (np.abs(px) < steepest) & (np.abs(py) < steepest)
    )
    chosen = particles.take(rows)
    slope = chosen.momentum[:, :2] / chosen.momentum[:, 2:]
    z = np.maximum(chosen.origin[:, 2], FIRST_Z)
    place = chosen.origin[:, :2] + slope * (z - chosen.origin[:, 2])[:, None] + kick[rows] * z[:, None] - kick_z[rows]
    (x, y), (tx, ty) = np.ascontiguousarray(place.T), np.ascontiguousarray((slope + kick[rows]).T)
    return rows, Flights(
        event=event[rows],
        x=x,
        y=y,
        z=z,
        tx=tx,
        ty=ty,
        p=np.maximum(chosen.p - energy_loss[rows], _LEAST_P),
        charge=chosen.charge.astype(np.float64),
        mass=_masses(chosen.pid),
        z_end=chosen.z_end.copy(),
    )


def _masses(pid: Int64Array) -> Float64Array:
    kind = np.abs(pid)
    masses: Float64Array = np.select([kind == known for known in MASS], list(MASS.values()), MASS[_PION])
    return masses


def ends_in_flight(random: EventRandom, flights: Flights, pid: Int64Array) -> tuple[Mask, Mask]:
    """Draw where hadrons decay or interact: sets `z_end` of those flights; returns which decay and which interact."""
    kind = np.abs(pid)
    hadron = (kind != _ELECTRON) & (kind != _MUON)
    # Only those before the SciFi's end count; the flight is nearly along z.
    angle = np.hypot(flights.tx, flights.ty)
    stretch = np.sqrt(1 + angle**2)
    c_tau, fraction = np.full(len(kind), np.inf), np.ones(len(kind))
    for species, (length, _, branching) in _DECAYS_IN_FLIGHT.items():
        c_tau[kind == species], fraction[kind == species] = length, branching
    flight = random.exponential(flights.event) * c_tau * flights.p / flights.mass
    decay_z = np.where(hadron, flights.z + flight / stretch, np.inf)
    depth = random.exponential(flights.event) / stretch / _INTERACTION_PER_X0
    before = np.cumsum(_SLAB_THICKNESS)
    passed = np.interp(flights.z, _SLAB_Z, before - _SLAB_THICKNESS, left=0.0, right=before[-1])
    slab = np.searchsorted(before, passed + depth)
    # One millimetre behind the slab, so that its layer still sees the particle.
    interaction_z = np.where(hadron, np.append(_SLAB_Z + 1.0, np.inf)[slab], np.inf)
    u = random.uniform(flights.event, 3)
    grazes = hadron & (u[:, 0] < _GRAZING_PART) & (angle > _GRAZING[0]) & (angle < _GRAZING[1])
    low, high = (np.where(u[:, 1] < _AT_FLANGES, *ends) for ends in zip(_FLANGES, _PIPE_Z, strict=True))
    interaction_z = np.where(grazes, np.minimum(interaction_z, low + u[:, 2] * (high - low)), interaction_z)
    decays = (decay_z < np.minimum(interaction_z, flights.z_end)) & (decay_z < _LAST_DECAY_Z)
    interacts = (interaction_z < np.minimum(decay_z, flights.z_end)) & (interaction_z > flights.z)
    flights.z_end = np.select([decays, interacts], [decay_z, interaction_z], flights.z_end)
    # A kaon with another decay ends as well, into particles that are not followed.
    return decays & (random.uniform(flights.event) < fraction), interacts


# Steeper particles from before the UT miss it: it ends at slopes of 0.33.
_BEFORE_UT, _ACCEPTANCE = 2000.0, 0.42

# Muons of later decays are still seen in the muon stations; the calorimeters stop all other hadrons.
_LAST_DECAY_Z = 12_300.0


def decay_muons(
    random: EventRandom, mothers: Flights, particles: ParticleColumns, key: Int64Array
) -> tuple[Int64Array, ParticleColumns]:
    """Event and muon of mothers at their decay points; their pids and keys as given."""
    kind = np.abs(particles.pid)
    p_star = np.empty(len(kind))
    for species, (_, muon_p, _) in _DECAYS_IN_FLIGHT.items():
        p_star[kind == species] = muon_p
    energy_star = np.hypot(p_star, MASS[_MUON])
    u = random.uniform(mothers.event, 2)
    cosine = 2 * u[:, 0] - 1
    gamma = np.hypot(mothers.p, mothers.mass) / mothers.mass
    along = gamma * p_star * cosine + mothers.p / mothers.mass * energy_star
    across = p_star * np.sqrt(1 - cosine**2)
    tilt = np.arctan2(across, along)
    momentum = np.hypot(along, across)[:, None] * _tilted(_direction(mothers), tilt, 2 * np.pi * u[:, 1])
    place = np.stack([mothers.x, mothers.y, mothers.z], axis=1)
    return mothers.event, _daughters(particles, key, place, momentum, -_MUON * particles.charge)


def interaction_products(
    random: EventRandom, mothers: Flights, particles: ParticleColumns, key: Int64Array
) -> tuple[Int64Array, ParticleColumns]:
    """Event and charged products of mothers at their interaction points; their pids and keys as given."""
    number = 1 + np.minimum(random.exponential(mothers.event) * (_PRODUCTS - 1), 8.0).astype(np.int64)
    which = np.repeat(np.arange(len(mothers)), number)
    event = mothers.event[which]
    u, normal = random.uniform(event, 3), random.normal(event, 2)
    p = np.minimum(_PRODUCT_P * np.exp(_PRODUCT_SPREAD * normal[:, 0]), 0.7 * mothers.p[which])
    tilt = np.minimum(np.radians(_PRODUCT_ANGLE) * np.exp(0.8 * normal[:, 1]), _STEEPEST)
    momentum = p[:, None] * _tilted(_direction(mothers)[which], tilt, 2 * np.pi * u[:, 0])
    is_proton = u[:, 2] < _PROTONS
    charge = np.where((u[:, 1] < 0.5) & ~is_proton, -1, 1)
    pid = np.where(is_proton, _PROTON, _PION) * charge
    place = np.stack([mothers.x, mothers.y, mothers.z], axis=1)[which]
    return event, _daughters(particles.take(which), key[which], place, momentum, pid)


def knock_on_electrons(
    random: EventRandom,
    flights: Flights,
    states: LayerStates,
    layer_z: Float64Array,
    particles: ParticleColumns,
    key: Int64Array,
) -> tuple[Int64Array, ParticleColumns]:
    """Event and electrons that flights knock out of the layers they crossed, at `layer_z`; their particles and keys.

    Kinetic energies T fall as 1 / T^2 up to the maximum of a collision, and determine the angle (Review of Particle
    Physics, passage of particles through matter).
    """
    row, layer = np.nonzero(states.reached.T)
    hit = np.flatnonzero(random.chance(flights.event[row], _KNOCK_ON_PART))
    row, layer = row[hit], layer[hit]
    u = random.uniform(flights.event[row], 3)
    energy = _KNOCK_ON_LEAST / np.maximum(u[:, 0], 1e-3)
    mass = MASS[_ELECTRON]
    # The mother's mass is neglected in the recoil, except for electrons, which can lose half of their energy.
    most = np.where(flights.mass[row] > 1.0, 2 * mass * (flights.p[row] / flights.mass[row]) ** 2, 0.5 * flights.p[row])
    possible = energy < most
    row, layer, u, energy = row[possible], layer[possible], u[possible], energy[possible]
    dz = _KNOCK_ON_DEPTH * (2 * u[:, 1] - 1)
    at = layer, row
    direction = np.stack([states.tx[at], states.ty[at], np.ones(len(row))], axis=1)
    place = np.stack([states.x[at], states.y[at], layer_z[layer]], axis=1) + direction * dz[:, None]
    tilt = np.arccos(np.sqrt(energy / (energy + 2 * mass)))
    momentum = np.sqrt(energy * (energy + 2 * mass))[:, None] * _tilted(direction, tilt, 2 * np.pi * u[:, 2])
    electrons = _daughters(particles.take(row), key[row], place, momentum, np.full(len(row), _ELECTRON))
    return flights.event[row], electrons


def _daughters(
    mothers: ParticleColumns, key: Int64Array, place: Float64Array, momentum: Float64Array, pid: Int64Array
) -> ParticleColumns:
    """Particles of mothers (row by row, of these keys), with the heavy ancestors of these."""
    charge = np.where(np.isin(np.abs(pid), (_ELECTRON, _MUON)), -np.sign(pid), np.sign(pid))
    particles = ParticleColumns.of(place, momentum, pid, charge, mother=mothers.pid, mother_key=key)
    for name in ("from_beauty", "from_charm", "dom_key", "dom_pid", "dom_pt", "dom_tau"):
        getattr(particles, name)[:] = getattr(mothers, name)
    return particles


def _direction(flights: Flights) -> Float64Array:
    return np.stack([flights.tx, flights.ty, np.ones(len(flights))], axis=1)


def _tilted(direction: Float64Array, tilt: Float64Array, phi: Float64Array) -> Float64Array:
    """Unit vectors at angles `tilt` and azimuth `phi` around directions f64[n, 3]."""
    along = direction / np.sqrt((direction**2).sum(axis=1))[:, None]
    # Two vectors across: the first in the x-z plane.
    first = np.stack([along[:, 2], np.zeros(len(along)), -along[:, 0]], axis=1)
    first /= np.hypot(first[:, 0], first[:, 2])[:, None]
    second = np.cross(along, first)
    across = first * np.cos(phi)[:, None] + second * np.sin(phi)[:, None]
    tilted: Float64Array = along * np.cos(tilt)[:, None] + across * np.sin(tilt)[:, None]
    return tilted


def _first_collision(positions: Float64Array) -> Float64Array:
    """The origin of the background's angles: the first collision of an event, f64[1, 3]."""
    return positions[:1] if len(positions) else np.zeros((1, 3))
