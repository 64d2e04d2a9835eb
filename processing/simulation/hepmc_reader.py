"""Events of a generator (Pythia, EvtGen ...) from a HepMC file; needs the extra `hepmc`."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hltnode.processing.simulation.collisions import SIGMA_XY, SIGMA_Z, SimulatedCollisions, generate
from hltnode.processing.simulation.sources import check_nu
from hltnode.processing.simulation.velo_particles import FloatArray, ParticleColumns

# Charges of the particles that the simulation follows; a generator decays all others that are charged.
_CHARGE = {11: -1, 13: -1, 211: 1, 321: 1, 2212: 1, 1000010020: 1}
_FINAL = 1
# Particles of the file are named by keys from here on.
_FIRST_KEY = 3_000_000
# Particles that start nearer to the collision (mm) come straight from it.
_PROMPT = 0.001
_BEAM_IDS = (2212, 2112)


class HepmcError(ValueError):
    """A HepMC file that cannot be read, or not by this installation; the message names it and says why."""


class HepmcSource:
    """One collision per event from a file, moved into the luminous region, on top of Poisson(nu) minimum-bias ones.

    Events are taken in the order of the file: event id i is its event i, and ids must rise from call to call.
    """

    def __init__(self, path: Path, nu: float, beamline: tuple[float, float]) -> None:
        """Raises HepmcError if pyhepmc is missing or the file cannot be opened, ValueError for an impossible nu."""
        check_nu(nu)
        self._path, self._nu, self._beamline = path, nu, beamline
        self._events = _events_of(path)
        self._next = 0

    def __call__(self, rng: np.random.Generator, event_id: int) -> SimulatedCollisions:
        """The collisions of an event. Raises HepmcError if the file ends before it or is damaged."""
        while True:
            try:
                event = next(self._events)
            except StopIteration:
                raise HepmcError(f"{self._path}: {self._next} events, event {event_id} is asked for") from None
            self._next += 1
            if self._next > event_id:
                break
        pile_up = generate(rng, self._nu, self._beamline)
        spread = np.array([SIGMA_XY, SIGMA_XY, SIGMA_Z])
        place = rng.normal(size=3) * spread + np.array([*self._beamline, 0.0])
        return _together(pile_up, _particles_of(event, place), place)


def _events_of(path: Path) -> Iterator[Any]:
    try:
        import pyhepmc
    except ImportError as error:
        raise HepmcError(f"{path}: reading HepMC needs pyhepmc: pip install 'hltnode[hepmc]'") from error
    if not path.is_file():
        raise HepmcError(f"{path}: no such file")
    return _read(pyhepmc, path)


def _read(pyhepmc: Any, path: Path) -> Iterator[Any]:
    try:
        with pyhepmc.open(str(path)) as file:
            for event in file:
                event.set_units(pyhepmc.Units.MEV, pyhepmc.Units.MM)
                yield event
    except (OSError, RuntimeError, ValueError, UnicodeDecodeError) as error:
        raise HepmcError(f"{path}: not a HepMC file that can be read: {error}") from error


def _particles_of(event: Any, place: FloatArray) -> ParticleColumns:
    """The charged final particles, those straight from the collision first; its origin moves to `place`."""
    final = [p for p in event.particles if p.status == _FINAL and abs(p.pid) in _CHARGE and p.momentum.pz != 0.0]
    origin, momentum = np.zeros((len(final), 3)), np.zeros((len(final), 3))
    pid, mother, mother_key = np.zeros((3, len(final)), dtype=np.int64)
    flavours = np.zeros((3, len(final)), dtype=bool)
    for i, particle in enumerate(final):
        vertex, p = particle.production_vertex, particle.momentum
        if vertex is not None:
            origin[i] = vertex.position.x, vertex.position.y, vertex.position.z
        momentum[i] = p.px, p.py, p.pz
        pid[i] = particle.pid
        ancestors = _hadron_ancestors(particle)
        if ancestors:
            mother[i], mother_key[i] = ancestors[0].pid, _FIRST_KEY + ancestors[0].id
        # The heaviest flavour among the ancestors counts.
        quark = max((_heaviest_quark(ancestor.pid) for ancestor in ancestors), default=0)
        flavours[:, i] = quark == 5, quark == 4, quark == 3
    sign = np.sign(pid)
    charge = sign * np.array([_CHARGE[abs(one)] for one in pid.tolist()], dtype=np.int64)
    is_prompt = np.sqrt((origin**2).sum(axis=1)) < _PROMPT
    mother[is_prompt & ~flavours[:2].any(axis=0)] = 0
    mother_key[mother == 0] = -1
    particles = ParticleColumns.of(origin + place, momentum, pid, charge, mother=mother, mother_key=mother_key)
    particles.from_beauty[:], particles.from_charm[:], particles.from_strange[:] = flavours
    return particles.take(np.argsort(~is_prompt, kind="stable"))


def _hadron_ancestors(particle: Any) -> list[Any]:
    """The decayed hadrons and resonances that a particle comes from, the nearest first."""
    found: list[Any] = []
    while True:
        vertex = particle.production_vertex
        parents = list(vertex.particles_in) if vertex is not None else []
        # Quarks, gluons, strings and beams are where hadrons begin.
        if len(parents) != 1 or abs(parents[0].pid) < 100 or abs(parents[0].pid) in _BEAM_IDS:
            return found
        particle = parents[0]
        found.append(particle)


def _heaviest_quark(pid: int) -> int:
    """The heaviest quark of a hadron: 5 beauty, 4 charm, 3 strange, from the digits of its PDG id."""
    digits = [abs(pid) // 10**place % 10 for place in (1, 2, 3)]
    return max(digits)


def _together(pile_up: SimulatedCollisions, particles: ParticleColumns, place: FloatArray) -> SimulatedCollisions:
    """All collisions of an event; particles straight from them stay in front."""
    n_prompt = int((np.sqrt(((particles.origin - place) ** 2).sum(axis=1)) < _PROMPT).sum())
    n = len(pile_up.collision)
    rows = np.arange(len(pile_up.particles))
    return replace(
        pile_up,
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
