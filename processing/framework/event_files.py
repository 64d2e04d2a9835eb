"""Files of events: MDF (plain or gzip), Run-3 MEP and 2019 MEP, recognised by their first header, memory-mapped.

Compiled code reads uncompressed MDF records. Python reads the others one by one, and names the fault of damaged ones.
"""

import gzip
import mmap
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from hltnode.processing.framework.streaming import Streaming
from hltnode.protocol._native import find_events
from hltnode.protocol.errors import BankError, MdfError, MepError, ProtocolError, RejectReason
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.file_format import FileFormat, format_of
from hltnode.protocol.raw_data.mdf import (
    GENERIC_HEADER_SIZE,
    announced_record_size,
    check_record_size,
    is_mdf,
    parse_record,
)
from hltnode.protocol.raw_data.mep import HEADER_SIZE as MEP_HEADER_SIZE
from hltnode.protocol.raw_data.mep import Mep, announced_size
from hltnode.protocol.raw_data.mep2019 import parse_mep2019
from hltnode.protocol.raw_data.raw_bank import RawBank

MAX_UNPACKED_RECORD = 64 << 20
"""Maximum size of a record of a gzip file in bytes; it may be much larger than the file."""


class EventFileError(RuntimeError):
    """A file cannot be read; the message gives its name, the fault and the place."""


EVENTS_PER_TABLE = 64
"""Most events that are read at a time."""
MAX_DAMAGE_TEXTS = 20
"""Texts that a DamageLog keeps; a file may have millions of damaged events."""
Damaged: TypeAlias = Callable[[EventFileError], None]
"""Is called with the fault of each event, MEP or rest of a file that cannot be read."""


@dataclass(slots=True)
class DamageLog:
    """The damage of an input: the number of faults, and the texts of the first ones."""

    n: int = 0
    first: list[str] = field(default_factory=list)

    def __call__(self, error: Exception | str) -> None:
        """Add a fault."""
        self.n += 1
        if len(self.first) < MAX_DAMAGE_TEXTS:
            self.first.append(str(error))

    def extend(self, later: "DamageLog") -> None:
        """Add the damage of the following part of the input."""
        self.n += later.n
        self.first += later.first[: MAX_DAMAGE_TEXTS - len(self.first)]

    def clear(self) -> None:
        """Forget all faults."""
        self.n = 0
        self.first.clear()


def raise_damage(error: EventFileError) -> None:
    """End the reading at the first damage."""
    raise error


def read_events(
    path: Path, begin: int = 0, damaged: Damaged = raise_damage, *, number: int = 0, n_records: int | None = None
) -> Iterator[list[RawBank]]:
    """The raw banks of each event of one file, see `read_event_tables`; payloads are views of the mapped file."""
    for table in read_event_tables(path, begin, damaged, number=number, n_records=n_records):
        yield from table


def read_event_tables(
    path: Path, begin: int = 0, damaged: Damaged = raise_damage, *, number: int = 0, n_records: int | None = None
) -> Iterator[EventTable]:
    """The events of one file, up to EVENTS_PER_TABLE at a time; those of a MEP together.

    begin: start of an MDF record or a Run-3 MEP in bytes, 0 for other files; number: number of that record in the file;
    n_records: most MDF records to read, damaged ones included; None: all. damaged: called with each damage; reading
    then goes on behind it, or ends if the place of the next event is unknown.

    Raises EventFileError if the file cannot be opened.
    """
    content = _mapped(path)
    if len(content) < GENERIC_HEADER_SIZE:
        damaged(EventFileError(f"{path}: {len(content)} bytes are less than any header"))
        return
    match format_of(content[:GENERIC_HEADER_SIZE]):
        case FileFormat.GZIP:
            yield from _unpacked_events(path, damaged)
        case FileFormat.MEP:
            yield from _events_of_meps(path, content, begin, damaged)
        case FileFormat.MEP_2019:
            try:
                yield EventTable.of_events(parse_mep2019(content).events())
            except ProtocolError as error:
                damaged(EventFileError(f"{path}: {error}"))
        case _:
            yield from _events_of_mdf(path, content, begin, damaged, number, n_records)


@dataclass(frozen=True, slots=True)
class CountedPart:
    """A part of a file: an MDF record, of which only the size is known, a Run-3 MEP, or a whole other file."""

    begin: int
    """Its start in bytes."""
    n_events: int
    is_read: bool
    """True if its damage is known. The damage of an MDF record is found when its banks are read."""


def event_counts(path: Path, damaged: Damaged = raise_damage) -> Iterator[CountedPart]:
    """The parts of a file with the number of their events.

    damaged: called with each damage that is found, see `read_events`. Raises EventFileError if the file cannot be
    opened.
    """
    content = _mapped(path)
    at = number = 0
    match format_of(content[:GENERIC_HEADER_SIZE]):
        case FileFormat.MEP:
            for at, mep in _meps_in(path, content, 0, damaged):
                yield CountedPart(at, mep.n_events, is_read=True)
        case FileFormat.MDF:
            while at < len(content):
                try:
                    size = check_record_size(content[at:], f"MDF record at byte {at}")
                except MdfError as error:
                    damaged(damaged_rest(path, error, number))
                    return
                yield CountedPart(at, 1, is_read=False)
                at += size
                number += 1
        case _:
            n_events = sum(len(table) for table in read_event_tables(path, damaged=damaged))
            yield CountedPart(0, n_events, is_read=True)


def refuse_pipe(path: Path) -> None:
    """Raise EventFileError if the path is not a regular file.

    Opening a pipe would wait for a writer, and files are mapped or read more than once.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise EventFileError(f"{path}: neither a file nor a folder: write its events to a file first")


def _mapped(path: Path) -> memoryview:
    try:
        refuse_pipe(path)
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise EventFileError(f"{path}: the file is empty")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise EventFileError(f"{path}: {error.strerror}") from error


def read_meps(path: Path, damaged: Damaged = raise_damage) -> Iterator[Mep]:
    """The Run-3 MEPs of a file, each a copy in memory that does not depend on the file.

    damaged: called with each damage; reading then goes on with the next MEP, or ends if its place is unknown. Raises
    EventFileError if the file cannot be read.
    """
    at = 0
    try:
        with path.open("rb") as file:
            while head := file.read(MEP_HEADER_SIZE):
                where = f"MEP at byte {at}"
                try:
                    size = announced_size(head, where)
                    packet = bytearray(head)
                    packet += file.read(size - MEP_HEADER_SIZE)
                    if len(packet) < size:
                        raise MepError(
                            RejectReason.TRUNCATED, f"{where}: {size} bytes announced, {len(packet)} are left"
                        )
                except ProtocolError as error:
                    damaged(EventFileError(f"{path}: {error}"))
                    return
                try:
                    mep = Mep.parse(packet)
                except ProtocolError as error:
                    damaged(EventFileError(f"{path}: {where}: {error}"))
                else:
                    yield mep
                at += size
    except OSError as error:
        raise EventFileError(f"{path}: {error.strerror}") from error


def read_all_events(paths: Iterable[Path], damaged: Damaged = raise_damage) -> Iterator[list[RawBank]]:
    """The raw banks of each event of several files, in order. Raises EventFileError, see `read_event_tables`."""
    for table in read_all_tables(paths, damaged):
        yield from table


def read_all_tables(paths: Iterable[Path], damaged: Damaged = raise_damage) -> Iterator[EventTable]:
    """The events of several files, in order. Raises EventFileError, see `read_event_tables`."""
    for path in paths:
        yield from read_event_tables(path, damaged=damaged)


def read_all_sub_slices(
    paths: Iterable[Path], streaming: Streaming, damaged: Damaged = raise_damage
) -> Iterator[EventTable]:
    """The events of several files, in order; those of MEPs, which are time slices, without their margins.

    So a file of consecutive slices has each sub-slice once. Raises EventFileError, see `read_event_tables`.
    """
    for path in paths:
        is_cut = format_of(_mapped(path)[:GENERIC_HEADER_SIZE]) is FileFormat.MEP
        for table in read_event_tables(path, damaged=damaged):
            if not is_cut:
                yield table
            elif n := streaming.core(len(table)):
                yield table[streaming.margin_before : streaming.margin_before + n]


def _events_of_mdf(
    path: Path, content: memoryview, begin: int, damaged: Damaged, number: int, n_records: int | None
) -> Iterator[EventTable]:
    at = begin
    end = None if n_records is None else number + n_records
    at_once = EVENTS_PER_TABLE
    while at < len(content) and number != end:
        most = at_once if end is None else min(at_once, end - number)
        begins, ends, _ = find_events(content, at, most, True)
        if begins:
            yield EventTable.of_bytes(content, begins, ends)
            at = ends[-1]
            number += len(begins)
            at_once = EVENTS_PER_TABLE
            continue
        # Where one record is damaged, the next one may be, too: its checksum alone is computed.
        at_once = 1
        where = f"MDF record at byte {at}"
        try:
            size = check_record_size(content[at:], where)
        except MdfError as error:
            damaged(damaged_rest(path, error, number))
            return
        try:
            event = _event_of(content[at : at + size], where)
        except MdfError as error:
            damaged(damaged_event(path, error, number))
        else:
            yield event
        at += size
        number += 1


def damaged_event(path: Path, error: ProtocolError, number: int) -> EventFileError:
    """The error of one event, by its number in the file."""
    return EventFileError(f"{path}: {error} (event {number} of the file)")


def damaged_rest(path: Path, error: ProtocolError, n_events: int) -> EventFileError:
    """The error of a place behind which the next event cannot be found."""
    return EventFileError(f"{path}: {error} (after {n_events} events; the rest of the file cannot be read)")


def _event_of(record: memoryview, where: str) -> EventTable:
    """The event of one MDF record. Raises MdfError; its text starts with `where`."""
    try:
        body = parse_record(record, where).body
        return EventTable.of_bytes(body, [0], [len(body)])
    except BankError as error:
        raise MdfError(error.reason, f"{where}: {error}") from error


def _events_of_meps(path: Path, content: memoryview, begin: int, damaged: Damaged) -> Iterator[EventTable]:
    for _, mep in _meps_in(path, content, begin, damaged):
        yield EventTable.of_mfps(mep.mfps)


def _meps_in(path: Path, content: memoryview, begin: int, damaged: Damaged) -> Iterator[tuple[int, Mep]]:
    """The MEPs from a place in bytes, each with its place."""
    at = begin
    while at < len(content):
        where = f"MEP at byte {at}"
        try:
            size = announced_size(content[at:], where)
            if at + size > len(content):
                raise MepError(RejectReason.TRUNCATED, f"{where}: {size} bytes announced, {len(content) - at} are left")
        except ProtocolError as error:
            damaged(EventFileError(f"{path}: {error}"))
            return
        try:
            mep = Mep.parse(content[at : at + size])
        except ProtocolError as error:
            damaged(EventFileError(f"{path}: {where}: {error}"))
        else:
            yield at, mep
        at += size


def _unpacked_events(path: Path, damaged: Damaged) -> Iterator[EventTable]:
    """The events of a gzip-compressed MDF file, each in its own memory."""
    at = number = 0
    try:
        with gzip.open(path) as file:
            while head := file.read(GENERIC_HEADER_SIZE):
                where = f"MDF record at byte {at} of the unpacked file"
                try:
                    if at == 0 and not is_mdf(head):
                        raise MdfError(RejectReason.MALFORMED, f"{where}: a gzip file must contain MDF")
                    size = announced_record_size(head, where)
                    if size > MAX_UNPACKED_RECORD:
                        raise MdfError(RejectReason.BAD_SIZE, f"{where}: {size} bytes exceed the limit of a record")
                    record = memoryview(head + file.read(size - len(head)))
                    check_record_size(record, where)
                except MdfError as error:
                    damaged(damaged_rest(path, error, number))
                    return
                try:
                    event = _event_of(record, where)
                except MdfError as error:
                    damaged(damaged_event(path, error, number))
                else:
                    yield event
                at += size
                number += 1
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        damaged(EventFileError(f"{path}: damaged gzip file after {at} unpacked bytes: {error}"))
