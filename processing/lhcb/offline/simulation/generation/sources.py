"""Where the particles of simulated events come from: named samples, or a generator's file."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hltnode.processing.lhcb.geometry.velo import BeamLine
from hltnode.processing.lhcb.offline.simulation.generation.collisions import SimulatedCollisions, generate
from hltnode.processing.lhcb.offline.simulation.generation.gas_collisions import (
    BEAM_GAS,
    LEAD_LEAD,
    LIGHT_ION,
    SMOG2,
    crossing_of,
    with_collision,
)
from hltnode.processing.lhcb.offline.simulation.generation.mixtures import ENRICHED
from hltnode.processing.lhcb.offline.simulation.generation.samples import (
    NUCLEI,
    SIGNALS,
    Sample,
    nucleus_from,
    signal_decay,
)
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns

Source = Callable[[EventRandom, Sequence[int]], list[SimulatedCollisions]]
"""Makes the collisions of several events from their random numbers and ids."""

LARGEST_NU = 200.0
KINDS = {
    Sample.SMOG2: SMOG2,
    Sample.BEAM_GAS: BEAM_GAS,
    Sample.LIGHT_ION: LIGHT_ION,
    Sample.PBPB: LEAD_LEAD,
}
"""Samples with one collision of a kind in each event. Ions collide instead of protons."""


def check_nu(nu: float) -> None:
    """Raises ValueError for a mean number of collisions that is negative, not finite or too large."""
    if not 0 <= nu <= LARGEST_NU:
        raise ValueError(f"nu = {nu}: the mean number of collisions must be between 0 and {LARGEST_NU:g}")


def sample_source(sample: Sample | str, nu: float, beamline: BeamLine, *, enrich: bool = False) -> Source:
    """The events of a named sample: minimum bias, one signal decay or nucleus in the first of at least one collision,
    or one collision of another kind.

    enrich: draw rare kinds of minimum bias more often; the events have weights.

    Raises ValueError for an unknown sample, an impossible nu, or signal that is to be enriched.
    """
    check_nu(nu)
    if sample not in list(Sample):
        raise ValueError(f"sample {sample!r} is not known, only {', '.join(Sample)}")
    signal, nucleus = SIGNALS.get(Sample(sample)), NUCLEI.get(Sample(sample))

    kind = KINDS.get(Sample(sample))

    def minimum_bias(random: EventRandom, _event_ids: Sequence[int]) -> list[SimulatedCollisions]:
        return generate(random, nu, beamline, mixture=ENRICHED if enrich else None)

    def of_kind(random: EventRandom, event_ids: Sequence[int]) -> list[SimulatedCollisions]:
        assert kind is not None
        crossings = [crossing_of(kind, event_id) for event_id in event_ids]
        return with_collision(random, kind, crossings, beamline, generate(random, nu, beamline), str(Sample(sample)))

    if signal is None and nucleus is None and kind is None:
        return minimum_bias
    if enrich:
        raise ValueError(
            f"sample {sample}: only minimum bias can be enriched, a signal is in every event of its sample"
        )
    if kind is not None:
        return of_kind

    def with_signal(random: EventRandom, _event_ids: Sequence[int]) -> list[SimulatedCollisions]:
        events = []
        for rng, event in zip(random.generators, generate(random, nu, beamline, at_least=1), strict=True):
            vertex = event.positions[0]
            if nucleus is not None:
                added = nucleus_from(rng, nucleus, vertex)
            else:
                assert signal is not None
                added = signal_decay(rng, signal, vertex)
            particles = ParticleColumns.join([event.particles, added])
            events.append(replace(event, particles=particles, kind=str(Sample(sample))))
        return events

    return with_signal
