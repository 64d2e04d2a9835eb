"""Event files after a kill, and events that are revoked: the files are brought into agreement with the journal."""

import fcntl
import os
import re
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import EventStream, FsyncPolicy
from hltnode.daemon.output.event_writer import (
    FINAL_SUFFIX,
    PART_SUFFIX,
    OutputError,
    final_path,
    recover_parts,
    sync_directory,
)
from hltnode.daemon.output.journal import Entry, Journal, JournalContent, read_journal
from hltnode.protocol.raw_data.mdf import HEADER_SIZE

_NAME = re.compile(r"(?P<prefix>.+)_(?P<run>\d{10})_(?P<stream>[a-z]+)_(?P<number>\d{5})\.mdf(\.part)?")

log = get_logger("recovery")


def take_over(directory: Path, node: str, prefix: str, fsync: FsyncPolicy) -> Journal:
    """Finish the files that earlier sessions of a node left unfinished, and open its journal for the session `prefix`.

    Raises:
        OutputError: a file cannot be read, cut or renamed, or the journal cannot be written.
    """
    path = directory / f"{node}.journal"
    history = read_journal(path)
    if history is not None:
        recover_files(directory, history)
    recover_parts(directory, f"{node}_")
    return Journal(path, prefix, fsync, history)


def recover_files(directory: Path, content: JournalContent) -> list[Path]:
    """Cut the files of sessions that were killed after the last record that the journal names, and finish them.

    Records after it belong to MEPs that were not acknowledged and will be sent again. If a file holds less than its
    journal entry, the machine has lost what was not forced to the disk; the rest is kept. Files that are locked by a
    running process are left alone. Returns the files that were changed or finished.

    Raises:
        OutputError: a file cannot be read, cut or renamed.
    """
    changed = []
    for prefix, positions in content.sessions.items():
        for path in sorted(directory.glob(f"{prefix}_*{FINAL_SUFFIX}*")):
            match = _NAME.fullmatch(path.name)
            if match is None or match["prefix"] != prefix or match["stream"] not in set(EventStream):
                continue
            number = int(match["number"])
            last_file, records = positions.get(EventStream(match["stream"]), (0, 0))
            wanted = None if number < last_file else records if number == last_file else 0
            try:
                if _cut(path, wanted):
                    changed.append(final_path(path))
            except OSError as error:
                raise OutputError(path, error) from error
    return changed


def _cut(path: Path, records: int | None) -> bool:
    """Leave the first `records` whole records (None: all) under the final name; True if something was done."""
    is_part = path.name.endswith(PART_SUFFIX)
    with path.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        size = os.fstat(file.fileno()).st_size
        end = 0
        for n, span in enumerate(_records(file.fileno(), size)):
            if n == records:
                break
            end = span[1]
        if end == size and not is_part:
            return False
        file.truncate(end)
        os.fsync(file.fileno())
    if end == 0:
        path.unlink()
    elif is_part:
        path.rename(final_path(path))
    sync_directory(path.parent)
    log.warning("file_recovered", path=str(final_path(path)), bytes=end, cut_bytes=size - end)
    return True


def _records(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """(begin, end) of each whole MDF record of a file of `size` bytes."""
    at = 0
    while at + HEADER_SIZE <= size:
        first, second, third = struct.unpack("<3I", os.pread(descriptor, 12, at))
        if not first == second == third or first < HEADER_SIZE or at + first > size:
            return
        yield at, at + first
        at += first


def revoke_events(directory: Path, content: JournalContent, run: int, meps: set[int]) -> set[int]:
    """Remove the events of some MEPs from finished files and the MEPs from `content`, whose journal must be compacted
    then.

    Returns the MEPs whose events cannot be reached any more, because their file was collected: they stay there, and may
    also be in the files of another node.

    Raises:
        OutputError: a file cannot be read or written.
    """
    to_remove: dict[tuple[str, EventStream, int], set[int]] = defaultdict(set)
    out_of_reach: set[int] = set()
    for entry in content.entries:
        if entry.run != run:
            continue
        for index, (mep, records) in enumerate(entry.meps):
            if mep not in meps:
                continue
            for stream, count in records.items():
                behind = sum(later.get(stream, 0) for _, later in entry.meps[index + 1 :])
                for distance in range(behind, behind + count):
                    where = _locate(directory, entry, stream, distance)
                    if where is None:
                        out_of_reach.add(mep)
                    else:
                        to_remove[entry.prefix, stream, where[0]].add(where[1])
    for (prefix, stream, number), gone in to_remove.items():
        path = _path(directory, prefix, run, stream, number)
        try:
            _rewrite_without(path, gone)
        except OSError as error:
            raise OutputError(path, error) from error
        log.warning("events_removed", path=str(path), events=len(gone), run=run)
        for entry in content.entries:
            at = entry.positions.get(stream)
            if entry.prefix == prefix and entry.run == run and at is not None and at[0] == number:
                entry.positions[stream] = (number, at[1] - sum(record < at[1] for record in gone))
    for entry in content.entries:
        if entry.run == run:
            entry.meps = [row for row in entry.meps if row[0] not in meps or row[0] in out_of_reach]
    ledger = content.finished_meps(run)
    for mep in meps:
        ledger.discard(mep)
    return out_of_reach


def _locate(directory: Path, entry: Entry, stream: EventStream, distance: int) -> tuple[int, int] | None:
    """File number and index of the record that is followed by `distance` records of its batch."""
    number, count = entry.positions[stream]
    while True:
        path = _path(directory, entry.prefix, entry.run, stream, number)
        if number < 1 or not path.exists():
            return None
        if distance < count:
            return number, count - 1 - distance
        distance -= count
        number -= 1
        before = _path(directory, entry.prefix, entry.run, stream, number)
        if before.exists():
            with before.open("rb") as file:
                count = sum(1 for _ in _records(file.fileno(), before.stat().st_size))


def _rewrite_without(path: Path, gone: set[int]) -> None:
    new = path.with_name(path.name + ".new")
    with path.open("rb") as file, new.open("wb") as copy:
        for index, (begin, end) in enumerate(_records(file.fileno(), path.stat().st_size)):
            if index not in gone:
                copy.write(os.pread(file.fileno(), end - begin, begin))
        copy.flush()
        os.fsync(copy.fileno())
    new.rename(path)
    sync_directory(path.parent)


def _path(directory: Path, prefix: str, run: int, stream: EventStream, number: int) -> Path:
    return directory / f"{prefix}_{run:010d}_{stream}_{number:05d}{FINAL_SUFFIX}"
