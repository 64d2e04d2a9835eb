"""Accepted events and the error stream, in rotating MDF files.

A file is written as NAME.mdf.part and renamed to NAME.mdf when it is full or the run ends, so that a collector of files
never takes an unfinished one. A failed write (disk full or broken) raises `OutputError`; the events stay in memory and
the next `flush` continues at the byte where the last one stopped. Events are dropped here only if the policy of the
stream allows it, and are counted.
"""

import errno
import fcntl
import os
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import EventStream, FsyncPolicy, SlowConsumerPolicy, WriteErrorKind
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.protocol.raw_data.mdf import HEADER_SIZE

PART_SUFFIX = ".mdf.part"
FINAL_SUFFIX = ".mdf"
# One write call takes about this much: larger ones are not faster, and joining everything at once costs memory.
WRITE_BYTES = 4 * 1024 * 1024

log = get_logger("event_writer")


class OutputError(OSError):
    """The events could not be written; they are kept, and `flush` may be called again."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror, str(path))
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        self.kind = WriteErrorKind.DISK_FULL if full else WriteErrorKind.IO


@dataclass(slots=True)
class _OpenFile:
    path: Path
    descriptor: int
    run: int
    bytes: int = 0
    events: int = 0


class _Stream:
    """One series of files; every appended record is either on the disk or still in `pending` and `rest`."""

    def __init__(self, policy: SlowConsumerPolicy) -> None:
        self.policy = policy
        self.pending: deque[tuple[int, bytes]] = deque()
        self.rest = memoryview(b"")
        self.file: _OpenFile | None = None
        self.files_opened = 0
        self.records = 0
        self.unsynced = False
        self.failed_sync: OutputError | None = None

    @property
    def unwritten_bytes(self) -> int:
        """Bytes that were appended and not written."""
        return len(self.rest) + sum(len(record) for _, record in self.pending)


class EventWriter:
    """Writes MDF records to `directory`; all calls from one thread at a time.

    Args:
        directory: created if its parent exists.
        prefix: start of every file name; names the node and its session, so that no two starts share a name.
        max_file_bytes, max_file_events: a file is finished before it would exceed one of them.
        policies: what a stream does when a write fails, `wait` (the default) or `drop_new`.

    Raises:
        OutputError: the directory cannot be created or written.
    """

    def __init__(
        self,
        directory: Path,
        prefix: str,
        counters: WriterCounters,
        *,
        max_file_bytes: int,
        max_file_events: int,
        fsync: FsyncPolicy,
        policies: Mapping[EventStream, SlowConsumerPolicy] | None = None,
    ) -> None:
        self.directory = directory
        self.prefix = prefix
        self._counters = counters
        self._max_file_bytes = max_file_bytes
        self._max_file_events = max_file_events
        self._fsync = fsync
        policies = policies or {}
        self._streams = {stream: _Stream(policies.get(stream, SlowConsumerPolicy.WAIT)) for stream in EventStream}
        self.problem: str | None = None
        """Why the last `flush` failed, None after one that worked; for `Health.disk_problem`."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            probe = directory / f".{prefix}.probe"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise OutputError(directory, error) from error

    def append(self, stream: EventStream, run: int, record: bytes) -> None:
        """Take one MDF record; it is on the disk only after the next `flush` has returned."""
        self._streams[stream].pending.append((run, record))
        self._counters.pending_bytes += len(record)

    def flush(self) -> dict[EventStream, int]:
        """Write everything appended so far to the files, forced to the disk if `fsync` is `flush`.

        When it returns, the MEPs whose events were appended may be acknowledged. A stream whose policy is `drop_new`
        drops what could not be written: the last records appended, whose number is returned for each stream.

        Raises:
            OutputError: not everything could be written; call again later.
        """
        failures: dict[EventStream, OutputError] = {}
        for name, stream in self._streams.items():
            try:
                if stream.failed_sync is not None:
                    raise stream.failed_sync
                self._write_pending(name, stream)
                if self._fsync is FsyncPolicy.FLUSH and stream.file is not None:
                    self._force(stream, stream.file)
            except OutputError as error:
                self._counters.errors[error.kind] += 1
                failures[name] = error
        dropped = {name: self._drop_pending(name) for name in failures if self._drops(name)}
        self._note(failures)
        return dropped

    def _drops(self, name: EventStream) -> bool:
        return self._streams[name].policy is SlowConsumerPolicy.DROP_NEW

    def _drop_pending(self, name: EventStream) -> int:
        """Drop the records of which no byte was written; returns their number."""
        pending = self._streams[name].pending
        n = len(pending)
        self._counters.streams[name].dropped += n
        self._counters.pending_bytes -= sum(len(record) for _, record in pending)
        pending.clear()
        return n

    def positions(self) -> dict[EventStream, tuple[int, int]]:
        """For each stream the number of its last file and the records in it."""
        return {name: (stream.files_opened, stream.records) for name, stream in self._streams.items()}

    def finish_files(self) -> None:
        """Flush, then give the open files their final names: the end of a run.

        Raises:
            OutputError: as `flush`; files that could not be finished stay open.
        """
        self.flush()
        failures: dict[EventStream, OutputError] = {}
        for name, stream in self._streams.items():
            try:
                self._finish(name, stream)
            except OutputError as error:
                self._counters.errors[error.kind] += 1
                failures[name] = error
        self._note(failures)

    def abandon(self) -> int:
        """Close the descriptors as they are, and return the number of bytes that were not written."""
        for stream in self._streams.values():
            if stream.file is not None:
                os.close(stream.file.descriptor)
                stream.file = None
        return sum(stream.unwritten_bytes for stream in self._streams.values())

    def _note(self, failures: Mapping[EventStream, OutputError]) -> None:
        """Store the problem, and raise the error of a stream whose policy is not `drop_new`."""
        if not failures:
            if self.problem is not None:
                log.info("disk_recovered", was=self.problem)
            self.problem = None
            return
        failure = next(iter(failures.values()))
        problem = f"{failure.filename}: {failure.strerror}"
        if problem != self.problem:
            log.error("disk_write_failed", kind=failure.kind, path=failure.filename, error=failure.strerror)
        self.problem = problem
        for name, error in failures.items():
            if not self._drops(name):
                raise error

    def _write_pending(self, name: EventStream, stream: _Stream) -> None:
        self._write_rest(name, stream)
        while stream.pending:
            run, record = stream.pending[0]
            if stream.file is not None and not self._fits(stream.file, run, len(record)):
                self._finish(name, stream)
            if stream.file is None:
                stream.file = self._open(name, stream, run)
            stream.rest = memoryview(self._take_chunk(name, stream, stream.file))
            self._write_rest(name, stream)

    def _take_chunk(self, name: EventStream, stream: _Stream, file: _OpenFile) -> bytes:
        """The next records that belong to `file`, joined; at least one."""
        records: list[bytes] = []
        size = 0
        while stream.pending and size < WRITE_BYTES:
            run, record = stream.pending[0]
            if not self._fits(file, run, len(record)):
                break
            stream.pending.popleft()
            records.append(record)
            size += len(record)
            file.events += 1
            file.bytes += len(record)
            stream.records = file.events
        self._counters.streams[name].events += len(records)
        return b"".join(records)

    def _fits(self, file: _OpenFile, run: int, size: int) -> bool:
        if file.run != run:
            return False
        if file.events == 0:
            return True
        return file.bytes + size <= self._max_file_bytes and file.events < self._max_file_events

    def _write_rest(self, name: EventStream, stream: _Stream) -> None:
        while stream.rest:
            file = stream.file
            assert file is not None
            try:
                written = os.write(file.descriptor, stream.rest)
            except OSError as error:
                raise OutputError(file.path, error) from error
            stream.rest = stream.rest[written:]
            stream.unsynced = True
            self._counters.pending_bytes -= written
            self._counters.streams[name].bytes += written

    def _open(self, name: EventStream, stream: _Stream, run: int) -> _OpenFile:
        path = self.directory / f"{self.prefix}_{run:010d}_{name}_{stream.files_opened + 1:05d}{PART_SUFFIX}"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise OutputError(path, error) from error
        # With this lock `recover_parts` of another process recognises a file that is still being written.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        stream.files_opened += 1
        return _OpenFile(path, descriptor, run)

    def _force(self, stream: _Stream, file: _OpenFile) -> None:
        if not stream.unsynced:
            return
        try:
            os.fdatasync(file.descriptor)
            sync_directory(self.directory)
        except OSError as error:
            # The kernel reports a failed write-back once and forgets the pages: a second fsync would succeed although
            # the data are gone. So no flush of this stream succeeds again until a restart.
            stream.failed_sync = OutputError(file.path, error)
            raise stream.failed_sync from error
        stream.unsynced = False

    def _finish(self, name: EventStream, stream: _Stream) -> None:
        file = stream.file
        if file is None:
            return
        if self._fsync is not FsyncPolicy.NEVER:
            self._force(stream, file)
        final = final_path(file.path)
        try:
            os.rename(file.path, final)
        except OSError as error:
            raise OutputError(file.path, error) from error
        os.close(file.descriptor)
        stream.file = None
        self._counters.streams[name].files += 1
        log.info("file_finished", path=str(final), events=file.events, bytes=file.bytes, run=file.run)
        if self._fsync is not FsyncPolicy.NEVER:
            try:
                sync_directory(self.directory)
            except OSError as error:
                raise OutputError(final, error) from error


def recover_parts(directory: Path, prefix: str) -> list[Path]:
    """Finish the *.mdf.part files whose name starts with `prefix` and which a killed process left unfinished.

    Each is cut after its last whole record and renamed; an empty one is removed; one that is locked by a running
    process is left alone. Returns the final paths.

    Raises:
        OutputError: a file cannot be read, cut or renamed.
    """
    finished = []
    for path in sorted(directory.glob(f"{prefix}*{PART_SUFFIX}")):
        try:
            with path.open("r+b") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                size = os.fstat(file.fileno()).st_size
                whole = _whole_records(file.fileno(), size)
                file.truncate(whole)
                os.fsync(file.fileno())
            if whole == 0:
                path.unlink()
                continue
            final = final_path(path)
            path.rename(final)
            sync_directory(directory)
        except OSError as error:
            raise OutputError(path, error) from error
        log.warning("file_recovered", path=str(final), bytes=whole, cut_bytes=size - whole)
        finished.append(final)
    return finished


def _whole_records(descriptor: int, size: int) -> int:
    """Number of bytes of a file of `size` bytes up to the end of its last whole MDF record."""
    at = 0
    while at + HEADER_SIZE <= size:
        first, second, third = struct.unpack("<3I", os.pread(descriptor, 12, at))
        if not first == second == third or first < HEADER_SIZE or at + first > size:
            break
        at += first
    return at


def final_path(part: Path) -> Path:
    """The name of a *.mdf.part file when it is finished."""
    return part.with_name(part.name.removesuffix(PART_SUFFIX) + FINAL_SUFFIX)


def sync_directory(directory: Path) -> None:
    """Force the names in a directory to the disk. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
