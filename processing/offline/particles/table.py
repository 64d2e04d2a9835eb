"""All particles of a chunk of events, in the order of their production: rows never move while the chunk is made."""

import numpy as np

from hltnode.processing.offline.arrays import Int64Array
from hltnode.processing.offline.particles.columns import ParticleColumns


class ParticleTable:
    """Particles with the event (0, 1, ... of the chunk) and the key (number in the event) of each."""

    def __init__(self, n_events: int) -> None:
        self._in_event = np.zeros(n_events, dtype=np.int64)
        self._events: list[Int64Array] = []
        self._keys: list[Int64Array] = []
        self._particles: list[ParticleColumns] = []
        self._n = 0

    def add(self, event: Int64Array, particles: ParticleColumns) -> Int64Array:
        """Append particles, by rising event; returns their rows. Keys continue those of the event."""
        counts = np.bincount(event, minlength=len(self._in_event))
        before = np.cumsum(counts) - counts
        self._keys.append(np.arange(len(event)) + (self._in_event - before)[event])
        self._events.append(event)
        self._particles.append(particles)
        self._in_event += counts
        self._n += len(event)
        return np.arange(self._n - len(event), self._n)

    @property
    def event(self) -> Int64Array:
        """The event of each row."""
        self._merge()
        return self._events[0]

    @property
    def key(self) -> Int64Array:
        """The key of each row."""
        self._merge()
        return self._keys[0]

    @property
    def particles(self) -> ParticleColumns:
        """All rows."""
        self._merge()
        return self._particles[0]

    def by_event(self) -> tuple[Int64Array, Int64Array, ParticleColumns, Int64Array]:
        """Event, key and particles in order of events, and the place there of each row."""
        order = np.argsort(self.event, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return self.event[order], self.key[order], self.particles.take(order), place

    def _merge(self) -> None:
        if len(self._events) > 1:
            self._events = [np.concatenate(self._events)]
            self._keys = [np.concatenate(self._keys)]
            self._particles = [ParticleColumns.join(self._particles)]
