"""Ranges of events in files, readable in any order and on any machine that has the files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hltnode.processing.framework.event_files import (
    Damaged,
    DamageLog,
    EventFileError,
    event_counts,
    raise_damage,
    read_event_tables,
)
from hltnode.protocol.event_table import EventTable


@dataclass(frozen=True, slots=True)
class FilePart:
    """Some events of one file: `n_events` events after skipping `skip` events from byte `begin`."""

    path: Path
    file_bytes: int
    """Size of the file at the time of the division."""
    begin: int
    skip: int
    n_events: int
    number: int = 0
    """Number of the MDF record at `begin`."""
    is_read: bool = False
    """True if the division has found the damage of the file. Otherwise each event is an MDF record, which may be
    damaged."""

    def read(self, damaged: Damaged = raise_damage) -> Iterator[EventTable]:
        """The events. `damaged` is called with each damage that the division has not found.

        Raises EventFileError if the file has changed.
        """
        try:
            size = self.path.stat().st_size
        except OSError as error:
            raise EventFileError(f"{self.path}: {error.strerror}") from error
        if size != self.file_bytes:
            raise EventFileError(
                f"{self.path}: the file has {size} bytes, but had {self.file_bytes} when it was divided"
            )
        if self.is_read:
            at = -self.skip
            for table in read_event_tables(self.path, self.begin, _known):
                if at + len(table) > 0:
                    yield table[max(0, -at) : self.n_events - at]
                at += len(table)
                if at >= self.n_events:
                    return
        else:
            yield from read_event_tables(self.path, self.begin, damaged, number=self.number, n_records=self.n_events)


def _known(_error: EventFileError) -> None:
    """The division has found this damage."""


@dataclass(frozen=True, slots=True)
class EventRange:
    """Consecutive events of a sample from number `first` on; they may be in several files.

    A part that is a DamageLog holds the damage that the division has found in the file before it.
    """

    first: int
    parts: tuple[FilePart | DamageLog, ...]

    @property
    def n_events(self) -> int:
        """Number of events, with the damaged ones among MDF records."""
        return sum(part.n_events for part in self.parts if isinstance(part, FilePart))

    def read(self, damage: DamageLog) -> Iterator[EventTable]:
        """The events that can be read; adds the faults of the others. Raises EventFileError."""
        for part in self.parts:
            if isinstance(part, DamageLog):
                damage.extend(part)
            else:
                yield from part.read(damage)


def event_ranges(paths: Sequence[Path], events_per_range: int) -> Iterator[EventRange]:
    """The events of some files, in order, in ranges of `events_per_range`; the last range may have fewer.

    Raises EventFileError for a file that cannot be opened.
    """
    filling = _Filling(events_per_range)
    for path in paths:
        yield from _ranges_of(path, filling)
    if filling.parts:
        yield filling.take()


@dataclass(slots=True)
class _Filling:
    """The range that is being filled."""

    events_per_range: int
    first: int = 0
    n_events: int = 0
    parts: list[FilePart | DamageLog] = field(default_factory=list)

    @property
    def free(self) -> int:
        return self.events_per_range - self.n_events

    def add(self, part: FilePart) -> None:
        self.parts.append(part)
        self.n_events += part.n_events

    def take(self) -> EventRange:
        found = EventRange(self.first, tuple(self.parts))
        self.first += self.n_events
        self.n_events, self.parts = 0, []
        return found


def _ranges_of(path: Path, filling: _Filling) -> Iterator[EventRange]:
    """Add the parts of a file, and yield the ranges that are full; a part ends with the file or with its range."""
    file_bytes = path.stat().st_size if path.exists() else 0
    damage = DamageLog()
    begin = skip = taken = first_number = 0
    is_read = False

    def part(n_events: int) -> FilePart:
        return FilePart(path, file_bytes, begin, skip, n_events, first_number, is_read)

    for number, counted in enumerate(event_counts(path, damage)):
        is_read = counted.is_read
        if not taken:
            begin, skip, first_number = counted.begin, 0, number
        used = 0
        while counted.n_events - used >= filling.free - taken:
            used += filling.free - taken
            filling.add(part(filling.free))
            yield filling.take()
            begin, skip, taken, first_number = counted.begin, used, 0, number
        taken += counted.n_events - used
    if taken:
        filling.add(part(taken))
    if damage.n:
        filling.parts.append(damage)
