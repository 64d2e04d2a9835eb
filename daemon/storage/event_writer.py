"""Writer of accepted events and of the error stream, in rotating MDF files.

A file is written as NAME.mdf.part. When it is full or closed, it stays open here until the `EventStore` gives it its
final name. A failed write (disk full or broken) raises `OutputError`: the events stay in memory, and the next `flush`
continues at the byte where the last one stopped. Events are dropped only if the policy of the stream allows it; every
dropped event is counted.
"""

import errno
import os
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from crc32c import crc32c

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import EventStream, SlowConsumerPolicy
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.daemon.storage.event_files import FileKey, Piece
from hltnode.daemon.storage.file_bytes import copy_bytes
from hltnode.daemon.storage.output_directory import OutputDirectory, OutputError
from hltnode.daemon.storage.record_block import RecordBlock
from hltnode.protocol.fragment_frame import joined_crc32c

# The journal keeps one row in memory (about 150 bytes) for each MEP of a file without its final name.
MAX_FILE_MEPS = 200_000

log = get_logger("event_writer")


@dataclass(slots=True)
class OpenFile:
    """A file of this session that does not have its final name yet."""

    key: FileKey
    descriptor: int
    bytes: int = 0
    events: int = 0
    meps: int = 0
    crc: int = 0
    """CRC32C of all bytes of the file."""
    unforced: bool = False
    distrusted: bool = False
    """`fdatasync` failed: the kernel dropped the dirty pages, so a second call would succeed and prove nothing."""
    lost: bool = False
    """The bytes read back differ from the bytes written."""


@dataclass(slots=True)
class _Pending:
    """A block whose records from `first` on are not written yet."""

    block: RecordBlock
    first: int = 0

    @property
    def records(self) -> int:
        """Number of unwritten records."""
        return len(self.block) - self.first

    @property
    def nbytes(self) -> int:
        """Bytes of the unwritten records."""
        return len(self.block.bytes_of(self.first, len(self.block)))


class _Stream:
    """One series of files. Every appended record is on the disk, in `rest` or in `pending`."""

    def __init__(self, policy: SlowConsumerPolicy) -> None:
        self.policy = policy
        self.pending: deque[_Pending] = deque()
        self.chunk: Piece | None = None
        """The piece whose unwritten bytes are `rest`."""
        self.rest = memoryview(b"")
        self.file: OpenFile | None = None
        self.closed: list[OpenFile] = []
        self.files_opened: Counter[int] = Counter()
        """Number of files of each run. A run that continues in this session continues the numbers of its files."""

    @property
    def unwritten_bytes(self) -> int:
        """Number of bytes appended but not written."""
        return len(self.rest) + sum(pending.nbytes for pending in self.pending)

    def files(self) -> list[OpenFile]:
        """Files of the stream without their final names."""
        return [*self.closed, *([self.file] if self.file is not None else ())]


class EventWriter:
    """Writes MDF records to files of a directory. Calls come from one thread at a time.

    Args:
        prefix: start of every file name: node and session, so that no two sessions share a file name.
        max_file_bytes, max_file_events: a file is closed before it would exceed either limit.
        policies: for each stream, what happens when a write fails: `wait` (the default) or `drop_new`.
    """

    def __init__(
        self,
        directory: OutputDirectory,
        prefix: str,
        counters: WriterCounters,
        *,
        max_file_bytes: int,
        max_file_events: int,
        policies: Mapping[EventStream, SlowConsumerPolicy] | None = None,
    ) -> None:
        self._directory = directory
        self._prefix = prefix
        self._counters = counters
        self._max_file_bytes = max_file_bytes
        self._max_file_events = max_file_events
        policies = policies or {}
        self._streams = {stream: _Stream(policies.get(stream, SlowConsumerPolicy.WAIT)) for stream in EventStream}
        self.written: list[tuple[FileKey, Piece]] = []
        """Pieces written but not yet in the journal; the caller empties the list."""
        self.retired: list[FileKey] = []
        """Files replaced by copies because `fdatasync` failed; the caller moves them and empties the list."""
        self.problem: str | None = None
        """Why the last call failed; None if it succeeded."""

    def append(self, stream: EventStream, block: RecordBlock) -> None:
        """Queue MDF records. They are in a file only after the next `flush` has returned."""
        if len(block):
            self._streams[stream].pending.append(_Pending(block))
            self._counters.pending_bytes += block.nbytes

    def flush(self) -> None:
        """Write everything appended so far to the files.

        `written` then holds the pieces. A stream with policy `drop_new` drops the records that could not be written.

        Raises:
            OutputError: some bytes could not be written; call again later.
        """
        self._for_each_stream(self._flush_stream)

    def close_files(self, run: int | None = None) -> None:
        """Close the open files (of one run, if given) to new records. Raises OutputError, as `flush`."""

        def close_stream(name: EventStream, stream: _Stream) -> None:
            if stream.file is not None and run in (None, stream.file.key.run):
                self._close_file(name, stream)

        self._for_each_stream(close_stream)

    def force(self, copied: Callable[[FileKey, FileKey], None]) -> None:
        """Force all written bytes to the disk.

        If a file cannot be forced, a forced copy replaces it; `copied(file, copy)` must record this.

        Raises:
            OutputError: a file could not be forced; call again later.
        """

        def force_stream(name: EventStream, stream: _Stream) -> None:
            self._write_rest(name, stream)
            for file in stream.files():
                if file.unforced:
                    self._force_file(stream, file, copied)

        self._for_each_stream(force_stream)

    def is_open(self, key: FileKey) -> bool:
        """Whether records may still be added to a file."""
        file = self._streams[key.stream].file
        return file is not None and file.key == key

    def release(self, key: FileKey) -> None:
        """Close the descriptor of a file that has its final name."""
        closed = self._streams[key.stream].closed
        for file in [file for file in closed if file.key == key]:
            closed.remove(file)
            os.close(file.descriptor)
            log.info("file_finished", path=key.final, events=file.events, bytes=file.bytes, run=key.run)

    def abandon(self) -> int:
        """Close the descriptors as they are, and return the number of bytes that were not written."""
        for stream in self._streams.values():
            for file in stream.files():
                os.close(file.descriptor)
            stream.file = None
            stream.closed.clear()
        return sum(stream.unwritten_bytes for stream in self._streams.values())

    def _for_each_stream(self, action: Callable[[EventStream, _Stream], None]) -> None:
        """Run `action` for every stream, then raise the first error of a stream whose policy is not `drop_new`."""
        failures: dict[EventStream, OutputError] = {}
        for name, stream in self._streams.items():
            try:
                action(name, stream)
            except OutputError as error:
                self._counters.errors[error.kind] += 1
                failures[name] = error
        for name in failures:
            if self._streams[name].policy is SlowConsumerPolicy.DROP_NEW:
                self._drop_pending(name)
        self._note(failures)

    def _drop_pending(self, name: EventStream) -> None:
        """Drop the records without any written byte."""
        pending = self._streams[name].pending
        self._counters.streams[name].dropped += sum(of_block.records for of_block in pending)
        self._counters.pending_bytes -= sum(of_block.nbytes for of_block in pending)
        pending.clear()

    def _note(self, failures: Mapping[EventStream, OutputError]) -> None:
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
            if self._streams[name].policy is not SlowConsumerPolicy.DROP_NEW:
                raise error

    def _flush_stream(self, name: EventStream, stream: _Stream) -> None:
        self._write_rest(name, stream)
        while stream.pending:
            pending = stream.pending[0]
            if stream.file is not None and not self._fitting(stream.file, pending):
                self._close_file(name, stream)
            if stream.file is None:
                stream.file = self._open(name, stream, pending.block.run)
            self._take_chunk(name, stream, stream.file)
            self._write_rest(name, stream)

    def _take_chunk(self, name: EventStream, stream: _Stream, file: OpenFile) -> None:
        """Make the next records for `file` (at least one) the current chunk; they are contiguous, for one write."""
        pending = stream.pending[0]
        block, first = pending.block, pending.first
        pending.first = last = first + self._fitting(file, pending)
        if last == len(block):
            stream.pending.popleft()
        chunk = block.bytes_of(first, last)
        rows = block.rows(first, last)
        stream.rest = chunk
        stream.chunk = Piece(file.bytes, crc32c(chunk), rows)
        file.events += last - first
        file.bytes += len(chunk)
        file.meps += len(rows)
        file.crc = joined_crc32c(file.crc, stream.chunk.crc, len(chunk))
        self._counters.streams[name].events += last - first

    def _fitting(self, file: OpenFile, pending: _Pending) -> int:
        """Number of the next records that go to `file`. An empty file takes one event of any size."""
        if file.key.run != pending.block.run:
            return 0
        room = 0 if file.meps >= MAX_FILE_MEPS else self._max_file_events - file.events
        fitting = pending.block.fitting(pending.first, self._max_file_bytes - file.bytes)
        return max(min(room, fitting), file.events == 0)

    def _write_rest(self, name: EventStream, stream: _Stream) -> None:
        file = stream.file
        if file is None or stream.chunk is None:
            return
        while stream.rest:
            try:
                written = os.write(file.descriptor, stream.rest)
            except OSError as error:
                raise OutputError(self._directory.path / file.key.part, error) from error
            stream.rest = stream.rest[written:]
            file.unforced = True
            self._counters.pending_bytes -= written
            self._counters.streams[name].bytes += written
        self.written.append((file.key, stream.chunk))
        stream.chunk = None

    def _open(self, name: EventStream, stream: _Stream, run: int) -> OpenFile:
        key = FileKey(self._prefix, run, name, stream.files_opened[run] + 1)
        descriptor = self._directory.open(key.part, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        stream.files_opened[run] += 1
        return OpenFile(key, descriptor)

    def _close_file(self, name: EventStream, stream: _Stream) -> None:
        self._write_rest(name, stream)
        if stream.file is not None:
            stream.closed.append(stream.file)
            stream.file = None

    def _force_file(self, stream: _Stream, file: OpenFile, copied: Callable[[FileKey, FileKey], None]) -> None:
        path = self._directory.path / file.key.part
        if not file.distrusted:
            try:
                os.fdatasync(file.descriptor)
            except OSError as error:
                file.distrusted = True
                log.error("file_not_forced", path=str(path), error=error.strerror)
        if file.distrusted:
            if file.lost:
                raise OutputError(path, OSError(errno.EIO, "events of this file are lost: it could not be forced"))
            try:
                self._copy(stream, file, copied)
            except OutputError:
                raise
            except OSError as error:
                raise OutputError(path, error) from error
        self._directory.sync()
        file.unforced = False

    def _copy(self, stream: _Stream, file: OpenFile, copied: Callable[[FileKey, FileKey], None]) -> None:
        """Replace a file that could not be forced by a forced copy, if its content can still be read unchanged."""
        new = self._open(file.key.stream, stream, file.key.run)
        try:
            crc = copy_bytes(file.descriptor, 0, file.bytes, new.descriptor)
            file.lost = crc != file.crc
            os.fdatasync(new.descriptor)
            self._directory.sync()
            if file.lost:
                raise OSError(errno.EIO, "events of this file are lost: it could not be forced")
            copied(file.key, new.key)
        except OSError:
            os.close(new.descriptor)
            self._directory.unlink(new.key.part)
            raise
        log.warning("file_copied", path=file.key.part, to=new.key.part, bytes=file.bytes)
        os.close(file.descriptor)
        self.retired.append(file.key)
        self.written = [(new.key if key == file.key else key, piece) for key, piece in self.written]
        file.key, file.descriptor, file.distrusted = new.key, new.descriptor, False
