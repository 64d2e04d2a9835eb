"""The journal: which MEPs are finished, by which the next session of the node recognises repeated MEPs.

One line is added per batch, after its events are in the files and before its MEPs are acknowledged. A line names the
MEPs with the number of records each has in every stream, and the positions in the files then. So after a kill every
event after the last line is cut from the files (its MEP was not acknowledged and is sent again), and every MEP in a
line is acknowledged again without being written again.

A line is the CRC32C of what follows in hexadecimal, a space, a JSON object. The first line that does not fit ends the
journal: it was being written when the node was killed.
"""

import errno
import json
import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crc32c import crc32c

from hltnode.daemon.common.mep_ranges import MepRanges
from hltnode.daemon.common.vocabulary import EventStream, FsyncPolicy
from hltnode.daemon.output.event_writer import OutputError

# Batches whose events can still be located in the files: those that a feeder may revoke, seconds of data.
KEPT_BATCHES = 4096
# The journal is rewritten when it has grown by this much; a batch takes some hundred bytes.
COMPACT_BYTES = 4 * 1024 * 1024
# Runs whose finished MEPs are kept; those of a run that ends in order are dropped at once.
KEPT_RUNS = 8

Position = tuple[int, int]
"""Number of a file in its stream, and its records."""


@dataclass(slots=True)
class Entry:
    """One batch: its MEPs with their records in each stream, and the positions in the files of its session after it."""

    prefix: str
    run: int
    meps: list[tuple[int, dict[EventStream, int]]]
    positions: dict[EventStream, Position]


@dataclass(slots=True)
class JournalContent:
    """The content of a journal."""

    done: dict[int, MepRanges] = field(default_factory=dict)
    entries: deque[Entry] = field(default_factory=lambda: deque(maxlen=KEPT_BATCHES))
    sessions: dict[str, dict[EventStream, Position]] = field(default_factory=dict)
    """Sessions that were not closed in order, by the prefix of their files, with the last position of each stream."""
    prefix: str = ""

    def apply(self, line: dict[str, Any]) -> None:
        """Apply one line."""
        if "session" in line:
            self.prefix = line["session"]
            self.sessions[self.prefix] = dict.fromkeys(EventStream, (0, 0))
        elif "batch" in line:
            meps = [(int(row[0]), dict(zip(EventStream, row[1:], strict=True))) for row in line["batch"]]
            positions = {EventStream(name): (at[0], at[1]) for name, at in line["files"].items()}
            entry = Entry(self.prefix, line["run"], meps, positions)
            self.entries.append(entry)
            self.sessions.setdefault(self.prefix, {}).update(positions)
            self.finished_meps(entry.run, line.get("done", True), (mep for mep, _ in meps))
        elif "done" in line:
            for first, last in line["done"]:
                self.finished_meps(line["run"]).add(first, last)
        elif "over" in line:
            self.done.pop(line["over"], None)
        elif "closed" in line:
            self.sessions.pop(line["closed"], None)

    def finished_meps(self, run: int, done: bool = True, meps: Iterable[int] = ()) -> MepRanges:
        """The finished MEPs of a run, after adding some."""
        ledger = self.done.setdefault(run, MepRanges())
        while len(self.done) > KEPT_RUNS:
            del self.done[next(iter(self.done))]
        if done:
            for mep in meps:
                ledger.add(mep)
        return ledger


def encode_line(line: dict[str, Any]) -> bytes:
    """A line of the journal."""
    text = json.dumps(line, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32c(text), text)


def read_journal(path: Path) -> JournalContent | None:
    """The content of a journal up to its first damaged line; None if there is no journal.

    Raises OutputError: it cannot be read.
    """
    content = JournalContent()
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(path, error) from error
    for row in raw.splitlines(keepends=True):
        if not row.endswith(b"\n") or row[8:9] != b" " or row[:8] != b"%08x" % crc32c(row[9:-1]):
            break
        content.apply(json.loads(row[9:-1]))
    return content


class Journal:
    """The journal of a session; written by one thread at a time.

    Args:
        prefix: start of the names of this session's event files.
        content: content of the journal of earlier sessions, after the files were recovered.

    Raises:
        OutputError: the file cannot be written.
    """

    def __init__(self, path: Path, prefix: str, fsync: FsyncPolicy, content: JournalContent | None = None) -> None:
        self._path = path
        self._prefix = prefix
        self._fsync = fsync
        self._descriptor = -1
        self.content = content or JournalContent()
        self.content.sessions.clear()
        self.content.apply({"session": prefix})
        self._end = 0
        self._compact_at = 0
        self.compact()

    def append(
        self,
        run: int,
        meps: list[tuple[int, dict[EventStream, int]]],
        positions: dict[EventStream, Position],
    ) -> None:
        """Add a batch whose events are in the files. Raises OutputError; may then be called again."""
        line = _batch_line(Entry(self._prefix, run, meps, positions))
        self._write(line, force=self._fsync is FsyncPolicy.FLUSH)
        self.content.apply(line)
        if self._end > self._compact_at:
            self.compact()

    def run_ended(self, run: int) -> None:
        """The run has ended in order: its MEPs will not be sent again. Raises OutputError."""
        self._write({"over": run}, force=self._fsync is not FsyncPolicy.NEVER)
        self.content.apply({"over": run})

    def close(self) -> None:
        """This session ends in order and its files are whole. Raises OutputError."""
        if self._descriptor >= 0:
            self._write({"closed": self._prefix}, force=self._fsync is not FsyncPolicy.NEVER)
            os.close(self._descriptor)
            self._descriptor = -1

    def acknowledged_below(self, run: int, below: int) -> None:
        """Every MEP below an id is acknowledged: merges their ranges into one."""
        if below > 0 and run in self.content.done:
            self.content.done[run].add(0, below - 1)

    def compact(self) -> None:
        """Rewrite the journal with what is still needed. Raises OutputError."""
        content = self.content
        lines: list[dict[str, Any]] = []
        prefix = ""
        for entry in content.entries:
            if entry.prefix != prefix:
                prefix = entry.prefix
                lines.append({"session": prefix})
            lines.append({**_batch_line(entry), "done": False})
        lines += [{"closed": entry} for entry in {e.prefix for e in content.entries} - {self._prefix}]
        if prefix != self._prefix:
            lines.append({"session": self._prefix})
        lines += [{"run": run, "done": ledger.ranges()} for run, ledger in content.done.items()]
        new = self._path.with_suffix(".journal.new")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o640)
            try:
                text = b"".join(map(encode_line, lines))
                if os.write(descriptor, text) != len(text):
                    raise OSError(errno.ENOSPC, "No space left on device")
                if self._fsync is not FsyncPolicy.NEVER:
                    os.fsync(descriptor)
                os.rename(new, self._path)
            except OSError:
                os.close(descriptor)
                raise
        except OSError as error:
            raise OutputError(new, error) from error
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._end = len(text)
        self._compact_at = self._end + COMPACT_BYTES

    def _write(self, line: dict[str, Any], *, force: bool) -> None:
        text = encode_line(line)
        try:
            if os.write(self._descriptor, text) != len(text):
                raise OSError(errno.ENOSPC, "No space left on device")
            if force:
                os.fdatasync(self._descriptor)
        except OSError as error:
            # A reader would stop at an incomplete line.
            os.ftruncate(self._descriptor, self._end)
            raise OutputError(self._path, error) from error
        self._end += len(text)


def _batch_line(entry: Entry) -> dict[str, Any]:
    return {
        "run": entry.run,
        "batch": [[mep, *(records.get(stream, 0) for stream in EventStream)] for mep, records in entry.meps],
        "files": {str(stream): list(at) for stream, at in entry.positions.items()},
    }
