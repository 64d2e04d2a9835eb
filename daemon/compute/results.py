"""The results of a batch: one row per event, whatever became of its MEPs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.compute.engine_interface import Output
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import line_words


@dataclass(frozen=True, slots=True)
class Results:
    """One row per event: accepted u8[n], lines u32[n, words], flags u32[n].

    Line i is bit i % 32 of word i // 32.
    """

    accepted: NDArray[np.uint8]
    lines: NDArray[np.uint32]
    flags: NDArray[np.uint32]
    objects: Mapping[str, int] = field(default_factory=dict)
    """What was found in all events together, by collection; empty without results."""


def flags_of(mep: MepRecord) -> EventFlag:
    """What is known of all events of a MEP before they are computed."""
    return EventFlag.INCOMPLETE if mep.missing else EventFlag(0)


class BatchResults:
    """Gathers the results of the MEPs of a batch, some of them after the others.

    As long as a MEP has none its events are accepted by no line and carry `not_computed`.
    """

    def __init__(self, meps: Sequence[MepRecord], n_lines: int, not_computed: EventFlag) -> None:
        self._rows = dict(_rows(meps))
        n = sum(mep.n_events for mep in meps)
        self._objects: dict[str, int] = {}
        self._all = Results(
            accepted=np.zeros(n, dtype=np.uint8),
            lines=np.zeros((n, line_words(n_lines)), dtype=np.uint32),
            flags=np.zeros(n, dtype=np.uint32),
            objects=self._objects,
        )
        for mep in meps:
            self._all.flags[self._rows[mep.mep]] = flags_of(mep) | not_computed

    def add(self, meps: Sequence[MepRecord], output: Output) -> None:
        """Some MEPs were computed together; the rows of `output` are theirs."""
        for mep, rows in _rows(meps):
            own = self._rows[mep]
            self._all.accepted[own] = output.accepted[rows]
            self._all.lines[own] = output.lines[rows]
            self._all.flags[own] = output.flags[rows]
        for name, counts in output.counts.items():
            self._objects[name] = self._objects.get(name, 0) + int(counts.sum(dtype=np.uint64))

    def fail(self, meps: Sequence[MepRecord]) -> None:
        """The back end failed on some MEPs: all their events are kept, so that none is lost to a broken back end."""
        for mep in meps:
            own = self._rows[mep.mep]
            self._all.accepted[own] = 1
            self._all.flags[own] = flags_of(mep) | EventFlag.BACKEND_ERROR

    def gathered(self) -> Results:
        """The rows of all MEPs."""
        return self._all


def _rows(meps: Sequence[MepRecord]) -> Iterator[tuple[int, slice]]:
    """Id and rows of each MEP where the events of several stand one behind the other."""
    first = 0
    for mep in meps:
        yield mep.mep, slice(first, first + mep.n_events)
        first += mep.n_events
