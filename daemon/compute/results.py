"""The results of a batch: one row per event, also for MEPs without results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.compute.engine_interface import Output
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import line_words


@dataclass(frozen=True, slots=True)
class Results:
    """One row per event: accepted u8[n], lines u32[n, words], flags u32[n], selected u32[n, words], counts u32[n,
    collections].

    Line i is bit i % 32 of word i // 32. `selected` is 0 in events that no line accepts.
    """

    accepted: NDArray[np.uint8]
    lines: NDArray[np.uint32]
    flags: NDArray[np.uint32]
    selected: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    """Sizes of the collections per event; 0 without results."""
    collections: tuple[str, ...]
    """Names of the columns of `counts`."""

    @property
    def objects(self) -> dict[str, int]:
        """Sum of `counts` over all events, by collection."""
        return dict(zip(self.collections, self.counts.sum(axis=0, dtype=np.uint64).tolist(), strict=True))

    def of_events(self, rows: slice) -> "Results":
        """The rows of a slice of events."""
        return Results(
            self.accepted[rows],
            self.lines[rows],
            self.flags[rows],
            self.selected[rows],
            self.counts[rows],
            self.collections,
        )


def flags_of(mep: MepRecord) -> EventFlag:
    """The initial rows of all events of a MEP, before computation."""
    return EventFlag.INCOMPLETE if mep.missing else EventFlag(0)


class BatchResults:
    """Collects the results of the MEPs of a batch, part by part.

    Until a MEP has results, no line accepts its events, and they carry the flag `not_computed`.
    """

    def __init__(
        self,
        meps: Sequence[MepRecord],
        n_lines: int,
        selected_words: int,
        collections: tuple[str, ...],
        not_computed: EventFlag,
    ) -> None:
        self._rows = dict(_rows(meps))
        n = sum(mep.n_events for mep in meps)
        self._all = Results(
            accepted=np.zeros(n, dtype=np.uint8),
            lines=np.zeros((n, line_words(n_lines)), dtype=np.uint32),
            flags=np.zeros(n, dtype=np.uint32),
            # The system allocates pages at the first write, and the rows of most events are never written.
            selected=np.zeros((n, selected_words), dtype=np.uint32),
            counts=np.zeros((n, len(collections)), dtype=np.uint32),
            collections=collections,
        )
        for mep in meps:
            self._all.flags[self._rows[mep.mep]] = flags_of(mep) | not_computed

    def add(self, meps: Sequence[MepRecord], output: Output) -> None:
        """Add the rows of `output`, of MEPs that were computed together."""
        for mep, rows in _rows(meps):
            own = self._rows[mep]
            self._all.accepted[own] = output.accepted[rows]
            self._all.lines[own] = output.lines[rows]
            self._all.flags[own] = output.flags[rows]
            is_accepted = np.flatnonzero(output.accepted[rows])
            self._all.selected[own][is_accepted] = output.selected[rows][is_accepted]
            for i, counts in enumerate(output.counts.values()):
                self._all.counts[own, i] = counts[rows]

    def fail(self, meps: Sequence[MepRecord]) -> None:
        """Mark MEPs on which the back end failed: all their events are kept, so a broken back end loses none."""
        for mep in meps:
            own = self._rows[mep.mep]
            self._all.accepted[own] = 1
            self._all.flags[own] = flags_of(mep) | EventFlag.BACKEND_ERROR

    def gathered(self) -> Results:
        """The rows of all MEPs."""
        return self._all


def _rows(meps: Sequence[MepRecord]) -> Iterator[tuple[int, slice]]:
    """Yield id and row slice of each MEP, for MEPs with consecutive rows."""
    first = 0
    for mep in meps:
        yield mep.mep, slice(first, first + mep.n_events)
        first += mep.n_events
