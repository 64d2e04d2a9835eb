"""Particles of proton-proton collisions at 13-14 TeV, for a vertex detector.

No physics generator: spectra and rates are simple shapes whose parameters were set by eye so that multiplicities,
angles and momenta look like LHCb's own simulated minimum-bias events (the velo-truth minbias set and the truth of the
seven full events; docs/simulation.md). Units: mm, MeV.
"""

from dataclasses import dataclass

import numpy as np

from hltnode.processing.lhcb.geometry.velo import BeamLine
from hltnode.processing.lhcb.offline.simulation.generation.enrichment import (
    PROMPT,
    AddedRows,
    Harder,
    Mixture,
    added_frequency,
    places_to_add,
)
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.particles.decays import LIGHT_MM_PER_NS, MASS, two_body_decay, unit_vectors
from hltnode.processing.offline.sorting import ranges
from hltnode.protocol.lhcb.truth import McSample, encode_sample
from hltnode.protocol.raw_data.raw_bank import RawBank

MINIMUM_BIAS = "minbias"
"""The kind of events that stand for bunch crossings."""

# Luminous region, standard deviations in mm, from the collisions of the seven full events.
SIGMA_XY = 0.030
SIGMA_Z = 63.0

# Charged particles of a collision over all angles below: most collisions are inelastic and spread exponentially, the
# others (diffraction) leave a few particles at most.
_INELASTIC_FRACTION = 0.78
_MEAN_INELASTIC = 51.5
_MEAN_DIFFRACTIVE = 1.0
# Collisions that make heavy particles are hard ones, with more particles by this factor.
_MEAN_UNDERLYING = 40.0

# Pseudorapidity: flat, falling off near _ETA_EDGE; the range with |eta| < _ETA_MIN never reaches the VELO.
_ETA_MIN, _ETA_EDGE, _ETA_FALL = 0.8, 5.6, 0.6
_ETA_GRID = np.linspace(_ETA_MIN, 8.0, 400)
_ETA_DENSITY = 1.0 / (1.0 + np.exp((_ETA_GRID - _ETA_EDGE) / _ETA_FALL))
# At small angles the path in material is longer: interactions and conversions grow with this power of 1 / sin(angle).
_SLANT_POWER = 0.5
_SLANT_DENSITY = _ETA_DENSITY * np.cosh(_ETA_GRID) ** _SLANT_POWER
_ETA_CUMULATIVE, _SLANT_CUMULATIVE = (np.cumsum(density) / density.sum() for density in (_ETA_DENSITY, _SLANT_DENSITY))

# Transverse momentum: log-normal.
_PT_MEDIAN, _PT_SPREAD = 360.0, 0.82

_PION, _KAON, _PROTON, _ELECTRON, _MUON = 211, 321, 2212, 11, 13
_PROMPT_PIDS = np.array([_PION, _KAON, _PROTON, _MUON])
_PROMPT_FRACTIONS = np.array([0.80, 0.11, 0.088, 0.002])

# Photons that convert in the material, and prompt hadrons that interact there, per charged particle.
_CONVERSION_FRACTION = 0.22
_PHOTON_PT_MEDIAN, _PHOTON_PT_SPREAD = 130.0, 1.1
_END_OF_VELO, _CONVERSIONS_BEHIND_VELO = 770.0, 0.5
_CONVERSION_KICK = 1.0  # MeV across the photon's direction
_INTERACTION_FRACTION, _MOST_SLANT = 0.028, 3.5  # at right angles, and how much more at the smallest
_INTERACTION_DAUGHTERS = 3.2
_INTERACTION_P_MEDIAN, _INTERACTION_KICK_MEDIAN, _INTERACTION_SPREAD = 600.0, 280.0, 0.8
# Knock-on electrons from the material, per charged prompt particle; their momenta (median, MeV, and
# spread of the logarithm) and the tangent of their angle to the particle.
_KNOCK_ON_FRACTION = 0.10
_KNOCK_ON_P, _KNOCK_ON_SPREAD, _KNOCK_ON_TANGENT = 5.0, 0.6, 0.55
# Particles that decay leave no hits and are not listed, but their daughters refer to them: by keys from here on.
FIRST_NEUTRAL_KEY = 1_000_000
# Distances from the beam (mm) at which particles cross material: RF foil and sensors.
_MATERIAL_RADII = (4.0, 40.0)


@dataclass(frozen=True, slots=True)
class Decay:
    """A particle that decays in flight into two charged ones: mean number per collision, mass (MeV), c tau (mm); in a
    fraction `alone` of its decays there are no other products, in the others there is a neutral one."""

    per_collision: float
    pid: int
    mass: float
    c_tau: float
    pt_median: float
    daughters: tuple[int, int]
    alone: float = 1.0


# Lifetimes and masses: Particle Data Group. The D0 represents all decays of charm, the B those of b hadrons: it makes a
# D0 and, as a virtual W does, a pair of pions. Few of the D0 make a kaon and a pion alone. Numbers and transverse
# momenta are tuned to the long particles of fully simulated events (docs/simulation.md).
DECAYS = (
    Decay(3.4, 310, 497.6, 26.84, 500.0, (_PION, -_PION)),
    Decay(0.7, 3122, 1115.7, 78.9, 700.0, (_PROTON, -_PION)),
    Decay(0.40, 421, 1864.8, 0.123, 1000.0, (-_KAON, _PION), alone=0.015),
    Decay(0.013, 511, 5279.7, 0.455, 2500.0, (_PION, -_PION), alone=0.0),
)
_K_SHORT = 310  # its own antiparticle
K_SHORT, LAMBDA, CHARM, BEAUTY = 0, 1, 2, 3
_STRANGE = (K_SHORT, LAMBDA)
"""Places in DECAYS."""
_NEUTRAL_MASS = 134.98
"""MeV; the least mass of the neutral products of a heavy particle, that of a neutral pion."""
_SMALLEST_W = 450.0
"""MeV; above the masses of three pions."""
_DECAY_RATE = np.array([decay.per_collision for decay in DECAYS])
_ALONE = np.array([decay.alone for decay in DECAYS])
_DECAY_PID = np.array([decay.pid for decay in DECAYS])
_DECAY_MASS, _DECAY_LENGTH, _DECAY_PT = np.array([(it.mass, it.c_tau, it.pt_median) for it in DECAYS]).T
_DAUGHTERS = np.array([decay.daughters for decay in DECAYS])
_DAUGHTER_MASSES = np.array([[MASS[abs(pid)] for pid in decay.daughters] for decay in DECAYS])


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedCollisions:
    """The collisions of an event, at `positions` f64[n, 3] (mm), and its charged particles.

    The first len(collision) particles come straight from the collision of that number (i64); the others do not. kind:
    name of the sample. weight: of the event in a mean over crossings.
    """

    positions: Float64Array
    particles: ParticleColumns
    collision: Int64Array
    kind: str = MINIMUM_BIAS
    weight: float = 1.0

    @property
    def truth(self) -> RawBank:
        """The bank with kind and weight."""
        return encode_sample(McSample(self.kind, self.kind == MINIMUM_BIAS, self.weight))


def generate(
    random: EventRandom, nu: float, beamline: BeamLine, *, at_least: int = 0, mixture: Mixture | None = None
) -> list[SimulatedCollisions]:
    """Events of Poisson(nu) collisions each along the luminous region, and their particles.

    Every event has at least `at_least` collisions, which are hard ones and come first. With a mixture, events of some
    kinds are more frequent, and all have weights.
    """
    n_events = len(random)
    choice = None if mixture is None else _Choice(mixture, random, nu)
    nus = np.full(n_events, nu) if choice is None else choice.nus
    n_collisions = np.maximum(random.poisson(nus[:, None])[:, 0], at_least)
    event = np.repeat(np.arange(n_events), n_collisions)
    number = _counted(n_collisions)
    positions = random.normal(event, 3) * (SIGMA_XY, SIGMA_XY, SIGMA_Z)
    positions[:, :2] += beamline.at(positions[:, 2])
    hard = number < at_least
    inelastic = random.chance(event, _INELASTIC_FRACTION) | hard
    mean = np.where(inelastic, _MEAN_INELASTIC, _MEAN_DIFFRACTIVE) * random.exponential(event)
    mean += np.where(hard, _MEAN_UNDERLYING, 0.0)
    multiplicity = random.poisson_by_row(event, mean)
    added = None
    if choice is not None:
        extra = choice.extra(random, event, mean, np.full(len(event), PROMPT))
        multiplicity += extra
        added = choice.spectra(np.repeat(np.arange(len(event)), multiplicity), event, extra)
    source = np.repeat(np.arange(len(event)), multiplicity)
    prompt = _NewParticles(event[source], _prompt_particles(random, event[source], positions[source], added))
    key = _counted(np.bincount(prompt.event, minlength=n_events))
    parts = [
        prompt,
        _conversions(random, event, positions, multiplicity),
        _knock_on_electrons(random, prompt, key),
        _interactions(random, prompt, key),
        _decay_products(random, event[inelastic], positions[inelastic], choice),
    ]
    weights = np.ones(n_events)
    if choice is not None:
        choice.count_collisions(n_collisions)
        choice.count_prompt(prompt, np.bincount(event, mean, minlength=n_events).astype(np.float64))
        weights = choice.weights
    of_particle = np.concatenate([part.event for part in parts])
    order = np.argsort(of_particle, kind="stable")
    particles = ParticleColumns.join([part.particles for part in parts]).take(order)
    edges, collision_edges, prompt_edges = (
        np.searchsorted(events, np.arange(n_events + 1)).tolist()
        for events in (of_particle[order], event, prompt.event)
    )
    return [
        SimulatedCollisions(positions[c], particles.take(p), number[source[q]], weight=weight)
        for c, p, q, weight in zip(
            *(map(slice, x, x[1:]) for x in (collision_edges, edges, prompt_edges)), weights.tolist(), strict=True
        )
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _NewParticles:
    """Particles of several events: the `event` i64[n] of each, which rises except for pairs, whose second particles
    follow."""

    event: Int64Array
    particles: ParticleColumns


class _Choice:
    """The kinds of the events of a chunk in a mixture, and how much more frequent each kind makes the events."""

    def __init__(self, mixture: Mixture, random: EventRandom, nu: float) -> None:
        self._mixture, self._nu = mixture, nu
        self._kind = mixture.chosen(random.uniform(np.arange(len(random))))
        self._frequencies = np.ones((len(mixture.kinds), len(random)))
        self.nus = nu * np.array([kind.busy for kind in mixture.kinds])[self._kind]

    @property
    def weights(self) -> Float64Array:
        """The weights of the events."""
        return self._mixture.weights(self._frequencies)

    def extra(self, random: EventRandom, event: Int64Array, mean: Float64Array, process: Int64Array) -> Int64Array:
        """How many particles to add in each row, which has `mean` particles of a process of its event."""
        kinds = self._mixture.kinds
        wanted = np.array([kind.process for kind in kinds])[self._kind][event] == process
        mean = np.where(wanted, mean, 0.0)
        n_events = len(self._kind)
        total = np.bincount(event, mean, minlength=n_events)
        ends = np.cumsum(mean)
        first = np.concatenate([[0.0], np.cumsum(total)[:-1]])
        n_added = np.where(total > 0, np.array([kind.n for kind in kinds])[self._kind], 0)
        added = np.repeat(np.arange(n_events), n_added)
        rows = np.searchsorted(ends, first[added] + random.uniform(added) * total[added], side="right")
        # Rounding must not choose a row of another event or process.
        chosen = np.flatnonzero(mean > 0)
        rows = chosen[np.clip(np.searchsorted(chosen, rows, side="right") - 1, 0, None)] if len(rows) else rows
        return np.bincount(rows, minlength=len(event)).astype(np.int64)

    def spectra(self, source: Int64Array, event: Int64Array, extra: Int64Array) -> AddedRows:
        """The spectra of the particles of the rows `source`: added ones are the last of their rows."""
        return AddedRows.of(
            places_to_add(source, extra), [kind.spectrum for kind in self._mixture.kinds], self._kind[event[source]]
        )

    def count_collisions(self, number: Int64Array) -> None:
        """Enter the frequencies of kinds with another number of collisions."""
        for row, kind in enumerate(self._mixture.kinds):
            if kind.busy != 1.0:
                self._frequencies[row] = kind.busy**number * np.exp(-(kind.busy - 1) * self._nu)

    def count_prompt(self, prompt: _NewParticles, mean: Float64Array) -> None:
        """Enter the frequencies of kinds with more prompt particles; mean: f64[events], all of them."""
        particles = prompt.particles
        for row, kind in enumerate(self._mixture.kinds):
            if kind.process == PROMPT:
                spectrum = kind.spectrum
                ratio = _eta_ratio(spectrum, particles.eta) * spectrum.pt_ratio(particles.pt, _PT_MEDIAN, _PT_SPREAD)
                if spectrum.pid:
                    fraction = _PROMPT_FRACTIONS[spectrum.pid == _PROMPT_PIDS].sum()
                    ratio *= (np.abs(particles.pid) == spectrum.pid) / fraction
                self._frequencies[row] = added_frequency(kind.n, prompt.event, ratio, mean)

    def count_decays(
        self,
        event: Int64Array,
        process: Int64Array,
        momentum: Float64Array,
        flight: Float64Array,
        alone: Mask,
        n_inelastic: Int64Array,
    ) -> None:
        """Enter the frequencies of kinds with more decaying particles. One row for each: place in DECAYS, momentum,
        distance flown in mean distances, whether there are no other products."""
        pt = np.hypot(momentum[:, 0], momentum[:, 1])
        eta = np.arcsinh(momentum[:, 2] / pt)
        for row, kind in enumerate(self._mixture.kinds):
            if kind.process < 0:
                continue
            spectrum, rows = kind.spectrum, np.flatnonzero(process == kind.process)
            ratio = _eta_ratio(spectrum, eta[rows]) * spectrum.flight_ratio(flight[rows])
            ratio *= spectrum.pt_ratio(pt[rows], _DECAY_PT[kind.process], _PT_SPREAD)
            if spectrum.alone:
                ratio *= alone[rows] / _ALONE[kind.process]
            self._frequencies[row] = added_frequency(
                kind.n, event[rows], ratio, n_inelastic * _DECAY_RATE[kind.process]
            )


def _eta_ratio(spectrum: Harder, eta: Float64Array) -> Float64Array:
    """Density of the pseudorapidity of added particles relative to all."""
    low, high = spectrum.eta_range(_ETA_GRID, _ETA_CUMULATIVE)
    inside = (eta > spectrum.eta[0]) & (eta < spectrum.eta[1])
    # One half of all particles flies backwards.
    return inside / (0.5 * (high - low))


def _counted(numbers: Int64Array) -> Int64Array:
    """0, 1, ..., n - 1 for each n of `numbers`, one range after the other."""
    return ranges(np.zeros_like(numbers), numbers)


def _signs(random: EventRandom, event: Int64Array) -> Int64Array:
    return np.where(random.chance(event, 0.5), -1, 1)


def _choice(random: EventRandom, event: Int64Array, values: Int64Array, fractions: Float64Array) -> Int64Array:
    chosen: Int64Array = values[np.searchsorted(np.cumsum(fractions[:-1]), random.uniform(event), side="right")]
    return chosen


def _log_normal(random: EventRandom, event: Int64Array, median: float | Float64Array, spread: float) -> Float64Array:
    values: Float64Array = median * np.exp(spread * random.normal(event))
    return values


def _prompt_particles(
    random: EventRandom, event: Int64Array, origin: Float64Array, added: AddedRows | None
) -> ParticleColumns:
    momentum = _momenta(random, event, _PT_MEDIAN, _PT_SPREAD, added=added)
    charge = _signs(random, event)
    kind = _choice(random, event, _PROMPT_PIDS, _PROMPT_FRACTIONS)
    pid = (kind if added is None else np.where(added.pid > 0, added.pid, kind)) * charge
    return ParticleColumns.of(origin, momentum, np.where(np.abs(pid) == _MUON, -pid, pid), charge)


def _momenta(
    random: EventRandom,
    event: Int64Array,
    pt_median: float | Float64Array,
    pt_spread: float,
    eta_cumulative: Float64Array = _ETA_CUMULATIVE,
    added: AddedRows | None = None,
) -> Float64Array:
    """Momenta f64[n, 3] with a spectrum of angles (the common one) and a log-normal transverse momentum."""
    u = random.uniform(event, 2)
    sign = _signs(random, event)
    if added is not None:
        low, high = added.eta_range(_ETA_GRID, eta_cumulative)
        u[:, 0] = low + (high - low) * u[:, 0]
        sign = np.where(added.is_added, 1, sign)
        pt_median = pt_median * added.pt
    eta = np.interp(u[:, 0], eta_cumulative, _ETA_GRID) * sign
    pt = _log_normal(random, event, pt_median, pt_spread)
    phi = np.pi * (2 * u[:, 1] - 1)
    return np.stack([pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)], axis=1)


def _points_in_material(
    random: EventRandom, event: Int64Array, origin: Float64Array, momentum: Float64Array
) -> Float64Array:
    """Points on the lines at a random distance from the beam at foil or silicon."""
    first, last = _MATERIAL_RADII
    radius = first + (last - first) * random.uniform(event)
    return origin + momentum * (radius / np.hypot(momentum[:, 0], momentum[:, 1]))[:, None]


def _conversions(
    random: EventRandom, event: Int64Array, positions: Float64Array, multiplicity: Int64Array
) -> _NewParticles:
    """Electron pairs of converted photons: nearly collinear with the photon, with a uniform share of its energy."""
    source = np.repeat(
        np.arange(len(event)),
        random.poisson_by_row(event, np.multiply(_CONVERSION_FRACTION, multiplicity, dtype=np.float64)),
    )
    event = event[source]
    photon = _momenta(random, event, _PHOTON_PT_MEDIAN, _PHOTON_PT_SPREAD, _SLANT_CUMULATIVE)
    share = 0.05 + 0.9 * random.uniform(event)[:, None]
    kick = _CONVERSION_KICK * random.normal(event, 3)
    momentum = np.concatenate([photon * share + kick, photon * (1 - share) - kick])
    charge = np.repeat([-1, 1], len(event))
    place = _points_in_material(random, event, positions[source], photon)
    # The material that small angles cross is thinner behind the VELO.
    kept = np.tile((place[:, 2] < _END_OF_VELO) | random.chance(event, _CONVERSIONS_BEHIND_VELO), 2)
    particles = ParticleColumns.of(np.tile(place, (2, 1)), momentum, -charge * _ELECTRON, charge, mother=22)
    return _NewParticles(np.tile(event, 2)[kept], particles.take(kept))


def _knock_on_electrons(random: EventRandom, prompt: _NewParticles, key: Int64Array) -> _NewParticles:
    """Electrons knocked out of the material by prompt particles, which continue."""
    hit = np.flatnonzero(random.chance(prompt.event, _KNOCK_ON_FRACTION))
    event, mothers = prompt.event[hit], prompt.particles.take(hit)
    vertex = _points_in_material(random, event, mothers.origin, mothers.momentum)
    direction = mothers.momentum / mothers.p[:, None]
    direction += _KNOCK_ON_TANGENT * np.cross(direction, unit_vectors(random.normal(event, 3)))
    p = _log_normal(random, event, _KNOCK_ON_P, _KNOCK_ON_SPREAD)
    momentum = p[:, None] * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    charge = np.full(len(hit), -1)
    return _NewParticles(
        event,
        ParticleColumns.of(vertex, momentum, -charge * _ELECTRON, charge, mother=mothers.pid, mother_key=key[hit]),
    )


def _interactions(random: EventRandom, prompt: _NewParticles, key: Int64Array) -> _NewParticles:
    """Hadrons produced in the material by prompt ones, which end there (their `z_end` is set)."""
    p, pt = prompt.particles.p, prompt.particles.pt
    slant = np.minimum((p / np.maximum(pt, 1e-3 * p)) ** _SLANT_POWER, _MOST_SLANT)
    hit = np.flatnonzero(random.chance(prompt.event, _INTERACTION_FRACTION * slant))
    vertex = _points_in_material(
        random, prompt.event[hit], prompt.particles.origin[hit], prompt.particles.momentum[hit]
    )
    prompt.particles.z_end[hit] = vertex[:, 2]
    more = random.poisson_by_row(prompt.event[hit], np.full(len(hit), _INTERACTION_DAUGHTERS - 1))
    vertex, mother = np.repeat(vertex, 1 + more, axis=0), np.repeat(hit, 1 + more)
    event, mothers = prompt.event[mother], prompt.particles.take(mother)
    p = _log_normal(random, event, _INTERACTION_P_MEDIAN, _INTERACTION_SPREAD)
    kick = _log_normal(random, event, _INTERACTION_KICK_MEDIAN, _INTERACTION_SPREAD)
    direction = mothers.momentum / mothers.p[:, None]
    across = np.cross(direction, unit_vectors(random.normal(event, 3)))
    momentum = p[:, None] * direction + kick[:, None] * across
    charge = _signs(random, event)
    pid = _choice(random, event, np.array([_PION, _PROTON]), np.array([0.7, 0.3])) * charge
    return _NewParticles(
        event, ParticleColumns.of(vertex, momentum, pid, charge, mother=mothers.pid, mother_key=key[mother])
    )


def _decay_products(
    random: EventRandom, event: Int64Array, positions: Float64Array, choice: _Choice | None
) -> _NewParticles:
    """The charged products of all particles of DECAYS: exponential flight, isotropic decay in the rest frame."""
    every = np.arange(len(event)).repeat(len(DECAYS))
    rates = np.tile(_DECAY_RATE, len(event))
    number = random.poisson_by_row(event[every], rates)
    place = np.tile(np.arange(len(DECAYS)), len(event))
    n_inelastic = np.bincount(event, minlength=len(random))
    added = None
    if choice is not None:
        extra = choice.extra(random, event[every], rates, place)
        number += extra
        added = choice.spectra(np.repeat(np.arange(len(every)), number), event[every], extra)
    kind = np.repeat(place, number)
    source = np.repeat(every, number)
    event = event[source]
    mother = _momenta(random, event, _DECAY_PT[kind], _PT_SPREAD, added=added)
    flown = random.exponential(event) * (1.0 if added is None else added.flight)
    flight = flown * _DECAY_LENGTH[kind]
    vertex = positions[source] + mother * (flight / _DECAY_MASS[kind])[:, None]
    sign = _signs(random, event)  # particle or antiparticle
    n_mothers = np.bincount(event, minlength=len(random))
    alone = _ALONE[kind] if added is None else np.where(added.alone, 1.0, _ALONE[kind])
    pairs = _pairs(random, event, kind, vertex, mother, alone)
    if choice is not None:
        choice.count_decays(event, kind, mother, flown, pairs.alone, n_inelastic)
    pair_event, of = event[pairs.mother], pairs.mother
    daughters = two_body_decay(
        random.normal(pair_event, 3), pairs.momentum, pairs.mass, *_DAUGHTER_MASSES.T[:, pairs.kind]
    )
    is_own = pairs.kind == kind[of]
    key = FIRST_NEUTRAL_KEY + _counted(n_mothers)
    # The charm of a B has a key behind those of all mothers.
    pair_key = np.where(is_own, key[of], key[of] + n_mothers[pair_event])
    pid = np.concatenate(sign[of] * _DAUGHTERS.T[:, pairs.kind])
    mother_pid = np.where(_DECAY_PID[pairs.kind] == _K_SHORT, _K_SHORT, sign[of] * _DECAY_PID[pairs.kind])
    products = ParticleColumns.of(
        np.tile(pairs.vertex, (2, 1)),
        np.concatenate(daughters),
        pid,
        np.sign(pid),
        mother=np.tile(mother_pid, 2),
        mother_key=np.tile(pair_key, 2),
    )
    of = np.tile(of, 2)
    products.from_beauty[:] = kind[of] == BEAUTY
    products.from_charm[:] = kind[of] == CHARM
    products.from_strange[:] = np.isin(kind[of], _STRANGE)
    heavy = products.from_beauty | products.from_charm
    ancestor = of[heavy]
    products.dom_key[heavy] = key[ancestor]
    products.dom_pid[heavy] = (sign * _DECAY_PID[kind])[ancestor]
    products.dom_pt[heavy] = np.hypot(mother[:, 0], mother[:, 1])[ancestor]
    products.dom_tau[heavy] = flight[ancestor] / LIGHT_MM_PER_NS
    return _NewParticles(np.tile(pair_event, 2), products)


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs of charged particles that decays make, one row each: row of the particle that decays, the place in DECAYS
    whose daughters they are, where they begin, momentum f64[n, 3] and mass of both together. Events rise.

    alone: of each particle that decays, whether its own pair are its only products."""

    mother: Int64Array
    kind: Int64Array
    vertex: Float64Array
    momentum: Float64Array
    mass: Float64Array
    alone: Mask


def _pairs(
    random: EventRandom,
    event: Int64Array,
    kind: Int64Array,
    vertex: Float64Array,
    mother: Float64Array,
    alone: Float64Array,
) -> _Pairs:
    """One pair of each decaying particle; a B also has the pair of its D0. alone: chance that its own pair is all that
    a particle makes."""
    beauty = np.flatnonzero(kind == BEAUTY)
    of_b = event[beauty]
    momentum, mass = mother.copy(), _DECAY_MASS[kind]
    mass[beauty] = _below(random, of_b, np.full(len(beauty), _SMALLEST_W), mass[beauty] - _DECAY_MASS[CHARM])
    momentum[beauty], charm = two_body_decay(
        random.normal(of_b, 3), mother[beauty], _DECAY_MASS[BEAUTY], mass[beauty], _DECAY_MASS[CHARM]
    )
    flight = charm * (random.exponential(of_b) * _DECAY_LENGTH[CHARM] / _DECAY_MASS[CHARM])[:, None]
    order = np.argsort(np.concatenate([event, of_b]), kind="stable")
    row = np.concatenate([np.arange(len(event)), beauty])[order]
    pairs = _Pairs(
        row,
        np.concatenate([kind, np.full(len(beauty), CHARM)])[order],
        np.concatenate([vertex, vertex[beauty] + flight])[order],
        np.concatenate([momentum, charm])[order],
        np.concatenate([mass, np.full(len(beauty), _DECAY_MASS[CHARM])])[order],
        np.ones(len(event), dtype=bool),
    )
    own = order < len(event)
    is_alone = random.chance(event[row], np.where(own, alone[row], _ALONE[pairs.kind]))
    pairs.alone[row[own]] = is_alone[own]
    others = np.flatnonzero(~is_alone)
    in_event, whole = event[row[others]], pairs.mass[others]
    pairs.mass[others] = _below(
        random, in_event, _DAUGHTER_MASSES[pairs.kind[others]].sum(axis=1), whole - _NEUTRAL_MASS
    )
    pairs.momentum[others], _ = two_body_decay(
        random.normal(in_event, 3), pairs.momentum[others], whole, pairs.mass[others], _NEUTRAL_MASS
    )
    return pairs


def _below(random: EventRandom, event: Int64Array, smallest: Float64Array, largest: Float64Array) -> Float64Array:
    """Masses between two bounds, uniform in the square: phase space of three bodies without its edges."""
    masses: Float64Array = np.sqrt(smallest**2 + (largest**2 - smallest**2) * random.uniform(event))
    return masses
