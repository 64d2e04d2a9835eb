"""Bunch crossings for the measurement of luminosity: a filling scheme with empty crossings, and beam-gas background."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hltnode.processing.lhcb.offline.simulation.generation.collisions import SimulatedCollisions
from hltnode.processing.offline.arrays import Int64Array
from hltnode.protocol.raw_data.odin import CrossingType

BUNCHES = 3564
# Of eight neighbouring bunches five collide, one has beam 1 alone, one beam 2 alone, one is empty.
_SCHEME = np.array(
    [CrossingType.BEAM_BEAM] * 5 + [CrossingType.BEAM_1, CrossingType.BEAM_2, CrossingType.NO_BEAM], np.int64
)
COLLIDING_BUNCHES = int((_SCHEME[np.arange(BUNCHES) % len(_SCHEME)] == CrossingType.BEAM_BEAM).sum())
BACKGROUND = 0.05
"""Mean number of interactions of each beam with gas in front of the luminometer, in a crossing with this beam."""
_STREAM = 84
"""Part of the seed: these random numbers leave those of collisions and detectors as they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """Crossings of n events.

    bunch: 0 to 3563. crossing: CrossingType. background: beam-gas interactions. generators: further random numbers of
    each event.
    """

    bunch: Int64Array
    crossing: Int64Array
    background: Int64Array
    generators: Sequence[np.random.Generator]

    @classmethod
    def of(cls, event_ids: Sequence[int], seed: int) -> Self:
        """The crossings of events, which depend on seed and event id alone."""
        generators = [np.random.default_rng((seed, event_id, _STREAM)) for event_id in event_ids]
        bunch = np.array([rng.integers(BUNCHES) for rng in generators], np.int64)
        crossing = _SCHEME[bunch % len(_SCHEME)]
        n_beams = (crossing & 1) + (crossing >> 1)
        gas = [rng.poisson(BACKGROUND * n) for rng, n in zip(generators, n_beams.tolist(), strict=True)]
        return cls(bunch, crossing, np.array(gas, np.int64), generators)

    def collisions(self, made: Sequence[SimulatedCollisions]) -> list[SimulatedCollisions]:
        """The same, without collisions where the beams do not meet."""
        meet = (self.crossing == CrossingType.BEAM_BEAM).tolist()
        return [one if collide else _without(one) for one, collide in zip(made, meet, strict=True)]


def _without(event: SimulatedCollisions) -> SimulatedCollisions:
    return replace(
        event,
        positions=event.positions[:0],
        particles=event.particles.take(np.zeros(0, np.int64)),
        collision=event.collision[:0],
    )
