"""Events of a generator (Pythia, EvtGen ...) from a HepMC file; needs the extra `hepmc`.

The generator must decay all particles that decay before the detector. Of its final particles, the reader returns
charged pions, kaons, protons, deuterons, electrons and muons. Units: mm, MeV.
"""

import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hltnode.processing.framework.installation import extra_hint
from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.particles.decays import LIGHT_MM_PER_NS

# Charges of the particles that are returned.
_CHARGE = {11: -1, 13: -1, 211: 1, 321: 1, 2212: 1, 1000010020: 1}
_FINAL, _BEAM = 1, 4
# Particles of the file have keys from here on.
_FIRST_KEY = 3_000_000
# Particles that start nearer to the collision (mm) come straight from it.
_PROMPT = 0.001
# The history of a hadron begins at quarks, gluons, codes of the generator and nucleons (beams).
_BEGINNINGS = frozenset({*range(1, 9), 21, *range(81, 101), 2112, 2212})
_HADRONS = 100
# Long-lived mothers, whose daughters count as strange in the truth.
_STRANGE = frozenset({130, 310, 3112, 3122, 3222, 3312, 3322, 3334})
# No particle of a collider has more momentum (MeV) or starts farther away (mm).
_LARGEST_P, _FARTHEST = 1e8, 1e5


class HepmcError(ValueError):
    """A HepMC file cannot be read, or pyhepmc is missing; the message names the file and the reason."""


class HepmcFile:
    """The events of a file, in its order: event id i is event i of the file, and ids must rise from call to call."""

    def __init__(self, path: Path) -> None:
        """Raises HepmcError if pyhepmc is missing or the file cannot be opened."""
        self._path = path
        self._events = _events_of(path)
        self._next = 0

    def find(self, event_id: int) -> Any:
        """An event of the file, for `particles`. Raises HepmcError if the file ends before it or is damaged."""
        while True:
            try:
                event = next(self._events)
            except StopIteration:
                raise HepmcError(self._too_short(event_id)) from None
            self._next += 1
            if self._next > event_id:
                return event

    def particles(self, event_id: int, event: Any, place: Float64Array) -> ParticleColumns:
        """The charged final particles of an event, those straight from the collision first; the collision moves to
        `place`. Raises HepmcError for an impossible particle."""
        try:
            return _particles_of(event, place)
        except ValueError as error:
            raise HepmcError(f"{self._path}, event {event_id}: {error}") from error

    def _too_short(self, event_id: int) -> str:
        # HepMC itself does not distinguish the end of a file from a line that it cannot read.
        if self._next == 0:
            return f"{self._path}: not a HepMC file, or one whose first event is damaged"
        return (
            f"{self._path}: event {event_id} is requested, but only {self._next} events can be read: the file ends "
            "there or is damaged"
        )


def _events_of(path: Path) -> Iterator[Any]:
    try:
        import pyhepmc
    except ImportError as error:
        raise HepmcError(f"{path}: reading HepMC needs pyhepmc: {extra_hint('hepmc')}") from error
    if not path.is_file():
        raise HepmcError(f"{path}: no such file")
    return _read(pyhepmc, path)


def _read(pyhepmc: Any, path: Path) -> Iterator[Any]:
    # The library prints every line that it cannot read; the error is one line.
    pyhepmc.Setup.print_errors = pyhepmc.Setup.print_warnings = False
    pyhepmc.Setup.debug_level = 0
    try:
        with pyhepmc.open(str(path)) as file:
            for event in file:
                event.set_units(pyhepmc.Units.MEV, pyhepmc.Units.MM)
                yield event
    except (OSError, EOFError, RuntimeError, ValueError, ImportError, zlib.error, lzma.LZMAError) as error:
        raise HepmcError(f"{path}: not a HepMC file that can be read: {error}") from error


def _particles_of(event: Any, place: Float64Array) -> ParticleColumns:
    """The charged final particles, those straight from the collision first; the collision moves to `place`.

    Raises ValueError for an impossible particle.
    """
    # A particle exactly along or across the beam reaches no detector.
    final = [
        p
        for p in event.particles
        if p.status == _FINAL and abs(p.pid) in _CHARGE and p.momentum.pz != 0.0 and p.momentum.pt() != 0.0
    ]
    origin, momentum = np.zeros((len(final), 3)), np.zeros((len(final), 3))
    pid, mother, mother_key = np.zeros((3, len(final)), dtype=np.int64)
    flags = np.zeros((3, len(final)), dtype=bool)
    heads: list[Any] = []
    collision = _collision_of(event)
    for i, particle in enumerate(final):
        p = particle.momentum
        origin[i] = collision if particle.production_vertex is None else _position(particle.production_vertex)
        momentum[i] = p.px, p.py, p.pz
        pid[i] = particle.pid
        ancestors = _ancestors(particle)
        if ancestors:
            mother[i], mother_key[i] = ancestors[0].pid, _FIRST_KEY + ancestors[0].id
            flags[2, i] = abs(ancestors[0].pid) in _STRANGE
        # Ancestors with the heaviest flavour count; the earliest hadron among them is the head.
        heavy = [(_heaviest_quark(ancestor.pid), ancestor) for ancestor in ancestors]
        flavour = max((quark for quark, _ in heavy), default=0)
        flags[:2, i] = flavour == 5, flavour == 4
        heads.append(next((one for quark, one in reversed(heavy) if quark == flavour), None) if flavour >= 4 else None)
    origin -= collision
    _check(origin, momentum, pid)
    charge = np.sign(pid) * np.array([_CHARGE[abs(one)] for one in pid.tolist()], dtype=np.int64)
    particles = ParticleColumns.of(origin + place, momentum, pid, charge, mother=mother, mother_key=mother_key)
    particles.from_beauty[:], particles.from_charm[:], particles.from_strange[:] = flags
    for i, head in enumerate(heads):
        if head is not None:
            particles.dom_key[i], particles.dom_pid[i] = _FIRST_KEY + head.id, head.pid
            particles.dom_pt[i], particles.dom_tau[i] = head.momentum.pt(), _lifetime(head)
    is_prompt = np.sqrt((origin**2).sum(axis=1)) < _PROMPT
    return particles.take(np.argsort(~is_prompt, kind="stable"))


def _check(origin: Float64Array, momentum: Float64Array, pid: np.ndarray[Any, Any]) -> None:
    # Comparisons with nan are false.
    good = (np.abs(momentum) < _LARGEST_P).all(axis=1) & (np.abs(origin) < _FARTHEST).all(axis=1)
    if not good.all():
        bad = int(np.argmin(good))
        raise ValueError(
            f"particle {pid[bad]} of momentum {momentum[bad].tolist()} MeV at {origin[bad].tolist()} mm is impossible"
        )


def _collision_of(event: Any) -> Float64Array:
    """The point of the collision; the origin for a generator that does not list the beams."""
    for particle in event.particles:
        if particle.status == _BEAM and particle.end_vertex is not None:
            return _position(particle.end_vertex)
    return np.zeros(3)


def _position(vertex: Any) -> Float64Array:
    place = vertex.position
    return np.array([place.x, place.y, place.z])


def _ancestors(particle: Any) -> list[Any]:
    """The decayed ancestors of a particle, the nearest first, without copies of a radiating particle."""
    found: list[Any] = []
    seen = {particle.id}
    while True:
        vertex = particle.production_vertex
        parents = list(vertex.particles_in) if vertex is not None else []
        # Damaged files may have loops.
        if len(parents) != 1 or abs(parents[0].pid) in _BEGINNINGS or parents[0].id in seen:
            return found
        if parents[0].pid != particle.pid:
            found.append(parents[0])
        particle = parents[0]
        seen.add(particle.id)


def _heaviest_quark(pid: int) -> int:
    """The heaviest quark of a hadron: 5 beauty, 4 charm, 3 strange, from the digits of its PDG id; 0 if it is none."""
    if abs(pid) <= _HADRONS:
        return 0
    return max(abs(pid) // 10**place % 10 for place in (1, 2, 3))


def _lifetime(head: Any) -> float:
    """Proper time (ns) between the vertices of a decayed particle."""
    produced, decayed = head.production_vertex, head.end_vertex
    if produced is None or decayed is None:
        return 0.0
    flown = float(np.linalg.norm(_position(decayed) - _position(produced)))
    p = float(np.linalg.norm([head.momentum.px, head.momentum.py, head.momentum.pz]))
    return flown * head.generated_mass / p / LIGHT_MM_PER_NS if p > 0 else 0.0


def count_prompt(particles: ParticleColumns, place: Float64Array) -> int:
    """The number of particles that come straight from the collision at `place`."""
    return int((np.sqrt(((particles.origin - place) ** 2).sum(axis=1)) < _PROMPT).sum())
