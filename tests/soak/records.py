"""The events in the files of a soak: whole MDF records, by run and number."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.mdf import iter_records
from tests.soak.content import event_of, missing_or_damaged


class Event(NamedTuple):
    """A fed event."""

    run: int
    number: int


class Record(NamedTuple):
    """An event in a record: sources without bank, and sources whose bank differs from the fed one."""

    event: Event
    file_run: int
    missing: frozenset[int]
    damaged: frozenset[int]


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file. Raises ProtocolError or ValueError at the first record that is not from a soak."""
    for record in iter_records(path.read_bytes()):
        banks = record.banks()
        run, number = event_of(banks)
        yield Record(Event(run, number), record.header.run, *missing_or_damaged(banks, run, number))


def events_of_file(path: Path) -> set[Event]:
    """The events of a possibly damaged file, up to the damage."""
    events: set[Event] = set()
    try:
        events.update(record.event for record in read_records(path))
    except (ProtocolError, ValueError):
        return events
    return events
