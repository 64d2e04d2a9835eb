"""Charged products of particles that decay in flight. Units: mm, MeV."""

from dataclasses import dataclass

import numpy as np

from hltnode.processing.lhcb.offline.simulation.generation.decay_table import (
    ALONE,
    BEAUTY,
    CHARM,
    DAUGHTER_MASSES,
    DAUGHTERS,
    DECAY_LENGTH,
    DECAY_MASS,
    DECAY_PID,
    DECAY_PT,
    DECAY_RATE,
    DECAYS,
    K_SHORT_PID,
    STRANGE,
)
from hltnode.processing.lhcb.offline.simulation.generation.mixture_choice import MixtureChoice
from hltnode.processing.lhcb.offline.simulation.generation.spectra import (
    PT_SPREAD,
    NewParticles,
    counted,
    momenta,
    signs,
)
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.particles.decays import LIGHT_MM_PER_NS, two_body_decay

# Particles that decay leave no hits and are not listed, but their daughters refer to them: by keys from here on.
FIRST_NEUTRAL_KEY = 1_000_000
_NEUTRAL_MASS = 134.98
"""MeV; the least mass of the neutral products of a heavy particle, that of a neutral pion."""
_SMALLEST_W = 450.0
"""MeV; above the masses of three pions."""


def decay_products(
    random: EventRandom, event: Int64Array, positions: Float64Array, choice: MixtureChoice | None
) -> NewParticles:
    """The charged products of all particles of DECAYS: exponential flight, isotropic decay in the rest frame."""
    every = np.arange(len(event)).repeat(len(DECAYS))
    rates = np.tile(DECAY_RATE, len(event))
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
    mother = momenta(random, event, DECAY_PT[kind], PT_SPREAD, added=added)
    flown = random.exponential(event) * (1.0 if added is None else added.flight)
    flight = flown * DECAY_LENGTH[kind]
    vertex = positions[source] + mother * (flight / DECAY_MASS[kind])[:, None]
    sign = signs(random, event)  # particle or antiparticle
    n_mothers = np.bincount(event, minlength=len(random))
    alone = ALONE[kind] if added is None else np.where(added.alone, 1.0, ALONE[kind])
    pairs = _pairs(random, event, kind, vertex, mother, alone)
    if choice is not None:
        choice.count_decays(event, kind, mother, flown, pairs.alone, n_inelastic)
    pair_event, of = event[pairs.mother], pairs.mother
    daughters = two_body_decay(
        random.normal(pair_event, 3), pairs.momentum, pairs.mass, *DAUGHTER_MASSES.T[:, pairs.kind]
    )
    is_own = pairs.kind == kind[of]
    key = FIRST_NEUTRAL_KEY + counted(n_mothers)
    # The charm of a B has a key behind those of all mothers.
    pair_key = np.where(is_own, key[of], key[of] + n_mothers[pair_event])
    pid = np.concatenate(sign[of] * DAUGHTERS.T[:, pairs.kind])
    mother_pid = np.where(DECAY_PID[pairs.kind] == K_SHORT_PID, K_SHORT_PID, sign[of] * DECAY_PID[pairs.kind])
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
    products.from_strange[:] = np.isin(kind[of], STRANGE)
    heavy = products.from_beauty | products.from_charm
    ancestor = of[heavy]
    products.dom_key[heavy] = key[ancestor]
    products.dom_pid[heavy] = (sign * DECAY_PID[kind])[ancestor]
    products.dom_pt[heavy] = np.hypot(mother[:, 0], mother[:, 1])[ancestor]
    products.dom_tau[heavy] = flight[ancestor] / LIGHT_MM_PER_NS
    return NewParticles(np.tile(pair_event, 2), products)


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
    momentum, mass = mother.copy(), DECAY_MASS[kind]
    mass[beauty] = _below(random, of_b, np.full(len(beauty), _SMALLEST_W), mass[beauty] - DECAY_MASS[CHARM])
    momentum[beauty], charm = two_body_decay(
        random.normal(of_b, 3), mother[beauty], DECAY_MASS[BEAUTY], mass[beauty], DECAY_MASS[CHARM]
    )
    flight = charm * (random.exponential(of_b) * DECAY_LENGTH[CHARM] / DECAY_MASS[CHARM])[:, None]
    order = np.argsort(np.concatenate([event, of_b]), kind="stable")
    row = np.concatenate([np.arange(len(event)), beauty])[order]
    pairs = _Pairs(
        row,
        np.concatenate([kind, np.full(len(beauty), CHARM)])[order],
        np.concatenate([vertex, vertex[beauty] + flight])[order],
        np.concatenate([momentum, charm])[order],
        np.concatenate([mass, np.full(len(beauty), DECAY_MASS[CHARM])])[order],
        np.ones(len(event), dtype=bool),
    )
    own = order < len(event)
    is_alone = random.chance(event[row], np.where(own, alone[row], ALONE[pairs.kind]))
    pairs.alone[row[own]] = is_alone[own]
    others = np.flatnonzero(~is_alone)
    in_event, whole = event[row[others]], pairs.mass[others]
    pairs.mass[others] = _below(
        random, in_event, DAUGHTER_MASSES[pairs.kind[others]].sum(axis=1), whole - _NEUTRAL_MASS
    )
    pairs.momentum[others], _ = two_body_decay(
        random.normal(in_event, 3), pairs.momentum[others], whole, pairs.mass[others], _NEUTRAL_MASS
    )
    return pairs


def _below(random: EventRandom, event: Int64Array, smallest: Float64Array, largest: Float64Array) -> Float64Array:
    """Masses between two bounds, uniform in the square: phase space of three bodies without its edges."""
    masses: Float64Array = np.sqrt(smallest**2 + (largest**2 - smallest**2) * random.uniform(event))
    return masses
