"""Particles of proton-proton collisions at 13-14 TeV, for a vertex detector.

No physics generator: spectra and rates are simple shapes whose parameters were set by eye so that multiplicities,
angles and momenta look like LHCb's own simulated minimum-bias events (the velo-truth minbias set and the truth of the
seven full events; docs/simulation.md). Units: mm, MeV.
"""

from dataclasses import dataclass

import numpy as np

from hltnode.processing.lhcb.geometry.velo import BeamLine
from hltnode.processing.lhcb.offline.simulation.generation.decay_products import decay_products
from hltnode.processing.lhcb.offline.simulation.generation.enrichment import PROMPT, Mixture
from hltnode.processing.lhcb.offline.simulation.generation.material_products import (
    conversions,
    interactions,
    knock_on_electrons,
)
from hltnode.processing.lhcb.offline.simulation.generation.mixture_choice import MixtureChoice
from hltnode.processing.lhcb.offline.simulation.generation.spectra import NewParticles, counted, prompt_particles
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.protocol.lhcb.truth import McSample, encode_sample
from hltnode.protocol.raw_data.odin import CrossingType
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


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedCollisions:
    """The collisions of an event, at `positions` f64[n, 3] (mm), and its charged particles.

    The first len(collision) particles come straight from the collision of that number (i64); the others do not. kind:
    name of the sample. weight: of the event in a mean over crossings. crossing_type: the beams with a bunch.
    """

    positions: Float64Array
    particles: ParticleColumns
    collision: Int64Array
    kind: str = MINIMUM_BIAS
    weight: float = 1.0
    crossing_type: CrossingType = CrossingType.BEAM_BEAM

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
    choice = None if mixture is None else MixtureChoice(mixture, random, nu)
    nus = np.full(n_events, nu) if choice is None else choice.nus
    n_collisions = np.maximum(random.poisson(nus[:, None])[:, 0], at_least)
    event = np.repeat(np.arange(n_events), n_collisions)
    number = counted(n_collisions)
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
    prompt = NewParticles(event[source], prompt_particles(random, event[source], positions[source], added))
    key = counted(np.bincount(prompt.event, minlength=n_events))
    parts = [
        prompt,
        conversions(random, event, positions, multiplicity),
        knock_on_electrons(random, prompt, key),
        interactions(random, prompt, key),
        decay_products(random, event[inelastic], positions[inelastic], choice),
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
