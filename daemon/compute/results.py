"""The results of a batch: one row per event, also for MEPs without results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.compute.engine_interface import Output
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import line_words
from hltnode.processing.framework.output_lists import ListContent, OutputList, joined_lists, no_words

# Each call of an enumeration costs a microsecond.
_NO_FLAG = EventFlag(0)


@dataclass(frozen=True, slots=True)
class Results:
    """One row per event: accepted u8[n], lines u32[n, words], flags u32[n], counts u32[n, collections].

    Line i is bit i % 32 of word i // 32. `selected` has the words of the candidates of accepted events.
    """

    accepted: NDArray[np.uint8]
    lines: NDArray[np.uint32]
    flags: NDArray[np.uint32]
    selected: ListContent
    counts: NDArray[np.uint32]
    """Sizes of the collections per event; 0 without results."""
    collections: tuple[str, ...]
    """Names of the columns of `counts`."""
    lists: Mapping[str, ListContent] = field(default_factory=dict)
    """The output lists, by name; no elements without results."""
    summary: NDArray[np.uint32] = field(default_factory=lambda: np.zeros((0, 0), np.uint32))
    """Counters of luminosity summaries, u32[n, counters]; 0 without results."""

    @property
    def objects(self) -> dict[str, int]:
        """Sum of `counts` over all events, by collection."""
        return dict(zip(self.collections, self.counts.sum(axis=0, dtype=np.uint64).tolist(), strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        nbytes = sum(each.nbytes for each in (self.accepted, self.lines, self.flags, self.counts, self.summary))
        for content in (self.selected, *self.lists.values()):
            nbytes += content.offsets.nbytes + sum(each.nbytes for each in content.values.values())
        return nbytes

    def of_events(self, rows: slice) -> "Results":
        """The rows of a slice of events."""
        return Results(
            self.accepted[rows],
            self.lines[rows],
            self.flags[rows],
            self.selected.part(rows.start, rows.stop),
            self.counts[rows],
            self.collections,
            {name: content.part(rows.start, rows.stop) for name, content in self.lists.items()},
            self.summary[rows],
        )


def flags_of(mep: MepRecord) -> EventFlag:
    """The initial rows of all events of a MEP, before computation."""
    return EventFlag.INCOMPLETE if mep.missing else _NO_FLAG


class BatchResults:
    """Collects the results of the MEPs of a batch, part by part.

    Until a MEP has results, no line accepts its events, and they carry the flag `not_computed`, or DROPPED if a
    rule drops it.
    """

    def __init__(
        self,
        meps: Sequence[MepRecord],
        n_lines: int,
        collections: tuple[str, ...],
        not_computed: EventFlag,
        lists: Mapping[str, OutputList] | None = None,
        n_counters: int = 0,
    ) -> None:
        self._meps = meps
        self._n_lines = n_lines
        self._collections = collections
        self._not_computed = not_computed
        self._n_counters = n_counters
        self._output_lists = lists or {}
        self._lists: dict[int, dict[str, ListContent]] = {}
        self._selected: dict[int, ListContent] = {}
        self._whole: Output | None = None
        """The output of the back end, if all MEPs were computed together."""

    @cached_property
    def _rows(self) -> dict[int, slice]:
        """The rows of each MEP. A batch that is computed as a whole needs none."""
        return dict(_rows(self._meps))

    @cached_property
    def _all(self) -> Results:
        """The results without those of MEPs. Nearly every batch is computed as a whole, and needs none."""
        n = sum(mep.n_events for mep in self._meps)
        everything = Results(
            accepted=np.zeros(n, dtype=np.uint8),
            lines=np.zeros((n, line_words(self._n_lines)), dtype=np.uint32),
            flags=np.zeros(n, dtype=np.uint32),
            selected=no_words(n),
            counts=np.zeros((n, len(self._collections)), dtype=np.uint32),
            collections=self._collections,
            summary=np.zeros((n, self._n_counters), dtype=np.uint32),
        )
        for mep in self._meps:
            not_decided = self._not_computed if mep.dropped_by is None else EventFlag.DROPPED
            everything.flags[self._rows[mep.mep]] = flags_of(mep) | not_decided
        return everything

    def add(self, meps: Sequence[MepRecord], output: Output) -> None:
        """Add the rows of `output`, of MEPs that were computed together.

        If they are all MEPs of the batch, `output` must stay valid until `gathered`.
        """
        if len(meps) == len(self._meps):
            # Nearly every batch: copies of whole arrays take 50 us less than copies and joins for each MEP.
            self._whole = output
            return
        for mep, rows in _rows(meps):
            own = self._rows[mep]
            self._all.accepted[own] = output.accepted[rows]
            self._all.lines[own] = output.lines[rows]
            self._all.flags[own] = output.flags[rows]
            self._selected[mep] = output.selected.part(rows.start, rows.stop).copy()
            if self._output_lists:
                parts = {name: output.lists[name].part(rows.start, rows.stop).copy() for name in self._output_lists}
                self._lists[mep] = parts
            for i, counts in enumerate(output.counts.values()):
                self._all.counts[own, i] = counts[rows]
            if self._all.summary.size:
                self._all.summary[own] = output.summary[rows]

    def _copied(self, output: Output) -> Results:
        """The results of all MEPs of the batch, computed together."""
        n = len(output.accepted)
        counts = np.empty((n, len(self._collections)), np.uint32)
        for i, of_collection in enumerate(output.counts.values()):
            counts[:, i] = of_collection
        return Results(
            accepted=output.accepted.copy(),
            lines=output.lines.copy(),
            flags=output.flags.copy(),
            selected=output.selected.copy(),
            counts=counts,
            collections=self._collections,
            lists={name: output.lists[name].copy() for name in self._output_lists},
            summary=output.summary.copy() if self._n_counters else np.zeros((n, 0), np.uint32),
        )

    def fail(self, meps: Sequence[MepRecord]) -> None:
        """Mark MEPs on which the back end failed: all their events are kept, so a broken back end loses none."""
        for mep in meps:
            own = self._rows[mep.mep]
            self._all.accepted[own] = 1
            self._all.flags[own] = flags_of(mep) | EventFlag.BACKEND_ERROR

    def for_decisions(self) -> Results:
        """The rows of all MEPs, without counts and counters of summaries. They may be views of the output.

        A decision that waits for nothing else is made of them: the copies of `gathered` take 30 us.
        """
        output = self._whole
        if output is None:
            return self.gathered()
        n = len(output.accepted)
        return Results(
            accepted=output.accepted,
            lines=output.lines,
            flags=output.flags,
            selected=output.selected,
            counts=np.zeros((n, 0), np.uint32),
            collections=(),
            lists={name: output.lists[name] for name in self._output_lists},
            summary=np.zeros((n, 0), np.uint32),
        )

    def gathered(self) -> Results:
        """The rows of all MEPs."""
        if self._whole is not None:
            return self._copied(self._whole)
        parts = [self._selected.get(mep) or no_words(rows.stop - rows.start) for mep, rows in self._rows.items()]
        lists = {name: self._joined(name, each) for name, each in self._output_lists.items()}
        return replace(self._all, selected=joined_lists([*parts, no_words(0)]), lists=lists)

    def _joined(self, name: str, of: OutputList) -> ListContent:
        parts = [
            self._lists[mep][name] if mep in self._lists else of.empty(rows.stop - rows.start)
            for mep, rows in self._rows.items()
        ]
        return joined_lists([*parts, of.empty(0)])


def _rows(meps: Sequence[MepRecord]) -> Iterator[tuple[int, slice]]:
    """Yield id and row slice of each MEP, for MEPs with consecutive rows."""
    first = 0
    for mep in meps:
        yield mep.mep, slice(first, first + mep.n_events)
        first += mep.n_events
