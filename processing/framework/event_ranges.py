"""Ranges of events in files, readable in any order and on any machine that has the files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from hltnode.processing.framework.event_files import EventFileError, event_counts, read_events
from hltnode.protocol.raw_data.raw_bank import RawBank


@dataclass(frozen=True, slots=True)
class FilePart:
    """Some events of one file: `n_events` events after skipping `skip` events from byte `begin`."""

    path: Path
    file_bytes: int
    """Size of the file at the time of the division."""
    begin: int
    skip: int
    n_events: int

    def read(self) -> Iterator[list[RawBank]]:
        """The raw banks of each event. Raises EventFileError, also if the file has changed."""
        try:
            size = self.path.stat().st_size
        except OSError as error:
            raise EventFileError(f"{self.path}: {error.strerror}") from error
        if size != self.file_bytes:
            raise EventFileError(
                f"{self.path}: the file has {size} bytes, but had {self.file_bytes} when it was divided"
            )
        yield from islice(read_events(self.path, self.begin), self.skip, self.skip + self.n_events)


@dataclass(frozen=True, slots=True)
class EventRange:
    """Consecutive events of a sample from number `first` on; they may be in several files."""

    first: int
    parts: tuple[FilePart, ...]

    @property
    def n_events(self) -> int:
        """Number of events."""
        return sum(part.n_events for part in self.parts)

    def read(self) -> Iterator[list[RawBank]]:
        """The raw banks of each event. Raises EventFileError."""
        for part in self.parts:
            yield from part.read()


def event_ranges(paths: Sequence[Path], events_per_range: int) -> Iterator[EventRange]:
    """The events of some files, in order, in ranges of `events_per_range`; the last range may have fewer.

    Raises EventFileError.
    """
    first = 0
    parts: list[FilePart] = []
    for part in _parts(paths, events_per_range):
        parts.append(part)
        if (first + sum(part.n_events for part in parts)) % events_per_range == 0:
            yield EventRange(first, tuple(parts))
            first += sum(part.n_events for part in parts)
            parts = []
    if parts:
        yield EventRange(first, tuple(parts))


def _parts(paths: Sequence[Path], events_per_range: int) -> Iterator[FilePart]:
    """Parts of the files; each ends at the end of a file or of a range."""
    free = events_per_range
    for path in paths:
        file_bytes = path.stat().st_size if path.exists() else 0
        begin = skip = taken = 0
        for at, n_events in event_counts(path):
            if not taken:
                begin, skip = at, 0
            used = 0
            while n_events - used >= free - taken:
                n = free - taken
                yield FilePart(path, file_bytes, begin, skip, taken + n)
                used += n
                begin, skip, taken, free = at, used, 0, events_per_range
            taken += n_events - used
        if taken:
            yield FilePart(path, file_bytes, begin, skip, taken)
            free -= taken
