"""Where the particles of simulated events come from: named samples, or a generator's file."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hltnode.processing.simulation.collisions import SimulatedCollisions, generate
from hltnode.processing.simulation.samples import SIGNALS, Sample, signal_decay
from hltnode.processing.simulation.velo_particles import ParticleColumns

Source = Callable[[np.random.Generator, int], SimulatedCollisions]
"""Makes the collisions of an event from its random numbers and its id."""

LARGEST_NU = 200.0


def check_nu(nu: float) -> None:
    """Raises ValueError for a mean number of collisions that is negative, not finite or beyond all reason."""
    if not 0 <= nu <= LARGEST_NU:
        raise ValueError(f"nu = {nu}: the mean number of collisions must lie between 0 and {LARGEST_NU:g}")


def sample_source(sample: Sample | str, nu: float, beamline: tuple[float, float]) -> Source:
    """The events of a named sample: minimum bias, or one signal decay in the first of at least one collision.

    Raises ValueError for an unknown sample or an impossible nu.
    """
    check_nu(nu)
    if sample not in list(Sample):
        raise ValueError(f"sample {sample!r} is not known, only {', '.join(Sample)}")
    signal = SIGNALS.get(Sample(sample))

    def minimum_bias(rng: np.random.Generator, _event_id: int) -> SimulatedCollisions:
        return generate(rng, nu, beamline)

    if signal is None:
        return minimum_bias

    def with_signal(rng: np.random.Generator, _event_id: int) -> SimulatedCollisions:
        collisions = generate(rng, nu, beamline, at_least=1)
        decay = signal_decay(rng, signal, collisions.positions[0])
        return replace(collisions, particles=ParticleColumns.join([collisions.particles, decay]))

    return with_signal
