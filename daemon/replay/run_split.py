"""The runs of an input: which events of its files belong to which run.

An event belongs to the run in its MDF header, or, if that is 0, in its ODIN bank. A Run-3 MEP belongs to the run in its
first ODIN bank. An event without a run belongs to the run before it, or, if there is none, to the first run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.inventory import EventInventory, Inventory, MepInventory, run_of_bank, run_of_mep
from hltnode.processing.framework.event_blocks import join_blocks, runs_in_headers
from hltnode.protocol.packing import EventBlock
from hltnode.protocol.raw_data.mep import Mep
from hltnode.protocol.raw_data.raw_bank import iter_banks


@dataclass(frozen=True, slots=True)
class RunOfInput:
    """A run of an input, and how its events are recognised."""

    number: int | None = None
    """The number in the headers; None: all events of the input belong to the run."""
    starts: Mapping[Path, int] = field(default_factory=dict)
    """By file, the run of events without a run that precede the first known one."""

    def events(self, path: Path) -> "EventsOfRun":
        """Selects the events of the run from the blocks of a file."""
        return EventsOfRun(self, path)

    def meps(self, path: Path) -> "MepsOfRun":
        """Selects the MEPs of the run from a file."""
        return MepsOfRun(self, path)


class _RunNumbers:
    """The run of each event of a file."""

    def __init__(self, before: int) -> None:
        self.last = before

    def of(self, block: EventBlock) -> NDArray[np.uint32]:
        """u32[events]; 0 before the first known run."""
        runs = runs_in_headers(block)
        for event in np.flatnonzero(runs == 0).tolist():
            banks = iter_banks(block.data[int(block.begins[event]) : int(block.ends[event])])
            runs[event] = next(filter(None, map(run_of_bank, banks)), 0)
        known = np.concatenate(([True], runs != 0))
        latest = np.maximum.accumulate(np.where(known, np.arange(len(known)), 0))
        filled = np.concatenate((np.array([self.last], np.uint32), runs))[latest][1:]
        self.last = int(filled[-1])
        return filled

    def of_mep(self, mep: Mep) -> int:
        self.last = run_of_mep(mep) or self.last
        return self.last


class EventsOfRun:
    """Selects the events of a run from consecutive blocks of one file."""

    def __init__(self, run: RunOfInput, path: Path) -> None:
        self._run = run.number
        self._numbers = _RunNumbers(run.starts.get(path, 0))

    def of(self, block: EventBlock) -> EventBlock:
        """The events of the run; the block itself if all belong to it."""
        if self._run is None:
            return block
        is_ours = self._numbers.of(block) == self._run
        return block if is_ours.all() else block.select(np.flatnonzero(is_ours))


class MepsOfRun:
    """Tells which consecutive MEPs of one file belong to a run."""

    def __init__(self, run: RunOfInput, path: Path) -> None:
        self._run = run.number
        self._numbers = _RunNumbers(run.starts.get(path, 0))

    def has(self, mep: Mep) -> bool:
        """True if the MEP belongs to the run."""
        return self._run is None or self._numbers.of_mep(mep) == self._run


_Part = TypeVar("_Part", EventInventory, MepInventory)


class _Runs(Generic[_Part]):
    """The inventories of the runs of an input, in the order of their first events."""

    def __init__(self, make: Callable[[], _Part]) -> None:
        self._make: Callable[[], _Part] = make
        self._numbers = _RunNumbers(0)
        self._parts: dict[int, _Part] = {}
        self._starts: dict[Path, int] = {}

    def _enter(self, path: Path) -> None:
        self._starts.setdefault(path, self._numbers.last)

    def _part(self, run: int) -> _Part:
        if run not in self._parts:
            # The events before the first known run belong to it.
            before = self._parts.pop(0, None)
            self._parts[run] = self._make() if before is None else before
        return self._parts[run]

    def results(self) -> list[tuple[RunOfInput, Inventory]]:
        """Each run with its inventory. Raises FeedError, also without events."""
        if len(self._parts) <= 1:
            part = next(iter(self._parts.values()), None)
            return [(RunOfInput(), (self._make() if part is None else part).result())]
        first = next(iter(self._parts))
        starts = {path: run or first for path, run in self._starts.items()}
        found = []
        for run, part in self._parts.items():
            try:
                found.append((RunOfInput(run, starts), part.result(run)))
            except FeedError as error:
                raise FeedError(f"run {run}: {error}") from error
        return found


class EventRuns(_Runs[EventInventory]):
    """Collects the runs of events. With `one_run`, all events are of one run."""

    def __init__(self, make: Callable[[], EventInventory], *, one_run: bool) -> None:
        super().__init__(make)
        self._one_run = one_run

    def add(self, path: Path, block: EventBlock) -> None:
        """Add the next events, all of one file."""
        if self._one_run:
            self._part(0).add(path, block)
            return
        self._enter(path)
        runs = self._numbers.of(block)
        numbers, firsts = np.unique(runs, return_index=True)
        for run in numbers[np.argsort(firsts)].tolist():
            self._part(run).add(path, block if len(numbers) == 1 else block.select(np.flatnonzero(runs == run)))


class MepRuns(_Runs[MepInventory]):
    """Collects the runs of MEPs. With a chosen run number, all MEPs are of one run."""

    def __init__(self, run: int | None) -> None:
        super().__init__(lambda: MepInventory(run))
        self._one_run = run is not None

    def add(self, path: Path, mep: Mep) -> None:
        """Add the next MEP of a file."""
        if self._one_run:
            self._part(0).add(path, mep)
            return
        self._enter(path)
        self._part(self._numbers.of_mep(mep)).add(path, mep)


def whole_run(run: RunOfInput, whole_files: list[tuple[Path, EventBlock]]) -> EventBlock:
    """All events of a run, from the events of each file in memory."""
    if run.number is None:
        return join_blocks([events for _, events in whole_files])
    parts = [(events, run.events(path).of(events)) for path, events in whole_files]
    return join_blocks([part if part is events else copied(part) for events, part in parts if len(part)])


def copied(block: EventBlock) -> EventBlock:
    """A block with its own copy of its events, without the bytes of others."""
    data = np.frombuffer(block.data, np.uint8)
    spans = list(zip(block.begins.tolist(), block.ends.tolist(), strict=True))
    ends = np.cumsum([end - begin for begin, end in spans], dtype=np.uint64)
    begins = np.concatenate((np.zeros(1, np.uint64), ends[:-1]))
    return EventBlock(np.concatenate([data[begin:end] for begin, end in spans]).data, begins, ends)


class Refilled:
    """Collects selected events until they fill a block."""

    def __init__(self, n_events: int, max_bytes: int) -> None:
        self._n_events = n_events
        self._max_bytes = max_bytes
        self._waiting: list[EventBlock] = []
        self._n = self._n_bytes = 0

    def add(self, block: EventBlock) -> list[EventBlock]:
        """The blocks that are full with these events. A block given here may be one of them."""
        full = []
        at = 0
        while at < len(block):
            end = min(len(block), at + self._n_events - self._n)
            part = block.part(at, end)
            at = end
            if not self._waiting and len(part) == self._n_events:
                full.append(part)
                continue
            self._waiting.append(copied(part))
            self._n += len(part)
            self._n_bytes += len(self._waiting[-1].data)
            if self._n == self._n_events or self._n_bytes >= self._max_bytes:
                full += self.rest()
        return full

    def rest(self) -> list[EventBlock]:
        """The block that is not full, if any."""
        waiting, self._waiting = self._waiting, []
        self._n = self._n_bytes = 0
        return [join_blocks(waiting)] if waiting else []
