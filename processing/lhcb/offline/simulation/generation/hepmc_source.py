"""Simulated events around the collisions of a HepMC file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hltnode.processing.lhcb.geometry.velo import BeamLine
from hltnode.processing.lhcb.offline.simulation.generation.collisions import (
    SIGMA_XY,
    SIGMA_Z,
    SimulatedCollisions,
    generate,
)
from hltnode.processing.lhcb.offline.simulation.generation.sources import check_nu
from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.particles.hepmc import HepmcFile, count_prompt

KIND = "hepmc"
"""The kind of events with a collision of a generator's file, which may hold any process."""


class HepmcSource:
    """One collision per event from a file, moved into the luminous region, in addition to Poisson(nu) minimum-bias
    ones.

    Events are taken in the order of the file: event id i is its event i, and ids must rise from call to call.
    """

    def __init__(self, path: Path, nu: float, beamline: BeamLine) -> None:
        """Raises HepmcError if pyhepmc is missing or the file cannot be opened, ValueError for an impossible nu."""
        check_nu(nu)
        self._file = HepmcFile(path)
        self._nu, self._beamline = nu, beamline

    def __call__(self, random: EventRandom, event_ids: Sequence[int]) -> list[SimulatedCollisions]:
        """The collisions of events. Raises HepmcError if the file ends before them or is damaged."""
        pile_up = generate(random, self._nu, self._beamline)
        events = zip(event_ids, random.generators, pile_up, strict=True)
        return [self._with_pile_up(event_id, rng, others) for event_id, rng, others in events]

    def _with_pile_up(
        self, event_id: int, rng: np.random.Generator, pile_up: SimulatedCollisions
    ) -> SimulatedCollisions:
        event = self._file.find(event_id)
        place = rng.normal(size=3) * np.array([SIGMA_XY, SIGMA_XY, SIGMA_Z])
        place[:2] += self._beamline.at(place[2])
        return _together(pile_up, self._file.particles(event_id, event, place), place)


def _together(pile_up: SimulatedCollisions, particles: ParticleColumns, place: Float64Array) -> SimulatedCollisions:
    """All collisions of an event; particles straight from them stay first."""
    n_prompt = count_prompt(particles, place)
    n = len(pile_up.collision)
    rows = np.arange(len(pile_up.particles))
    return replace(
        pile_up,
        kind=KIND,
        positions=np.concatenate([pile_up.positions, place[None]]),
        particles=ParticleColumns.join(
            [
                pile_up.particles.take(rows[:n]),
                particles.take(np.arange(n_prompt)),
                pile_up.particles.take(rows[n:]),
                particles.take(np.arange(n_prompt, len(particles))),
            ]
        ),
        collision=np.concatenate([pile_up.collision, np.full(n_prompt, len(pile_up.positions))]),
    )
