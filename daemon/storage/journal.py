"""The open journal. Each MEP is recorded in it before it is acknowledged (docs/formats/node-files.md).

After a kill, all written records are there; after a power cut, all forced ones. The journal is rewritten from its
content in memory, which is complete. The old file stays in place until the new one is forced.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import FsyncPolicy
from hltnode.daemon.storage.event_files import FileKey, Piece
from hltnode.daemon.storage.file_bytes import write_all
from hltnode.daemon.storage.journal_content import JournalContent, Ranges, Revocation, piece_row
from hltnode.daemon.storage.journal_format import Record, encode_record
from hltnode.daemon.storage.output_directory import OutputDirectory, OutputError

# The journal is rewritten after it has grown by this much and to at least twice its size. A batch adds a few 100 bytes.
COMPACT_BYTES = 4 * 1024 * 1024

Result = TypeVar("Result")

log = get_logger("journal")


class Journal:
    """The journal of a session.

    Calls come from one thread at a time; only `use_tck`, `begin_batch`, `end_batch`, `reserve`, `interrupted` and
    `begun_below` may come from any thread.
    All methods raise OutputError when a write fails, and may then be called again.

    Args:
        name: file name; an existing file is replaced.
        prefix: start of the names of this session's event files.
        boot: identifier of the current boot of the machine.
        content: the content of the earlier journal, after recovery.
        tck: key of the trigger configuration of this session, until `use_tck`.
    """

    def __init__(
        self,
        directory: OutputDirectory,
        name: str,
        prefix: str,
        content: JournalContent,
        *,
        boot: str,
        fsync: FsyncPolicy,
        tck: int = 0,
    ) -> None:
        self.content = content
        self._tck = tck
        self._directory = directory
        self._name = name
        self._prefix = prefix
        self._fsync = fsync
        self._lock = threading.Lock()
        self._descriptor = -1
        self._end = 0
        self._compact_at = 0
        self._unforced = False
        self._distrusted = False
        self._new_name = f"{name}.new"
        self._since: list[bytes] | None = None
        """The records since the text of a new file was made; None while no file is made."""
        content.sessions.clear()
        content.begin_session(prefix, boot)
        self.compact()

    def batch(self, run: int, meps: Ranges, pieces: Sequence[tuple[FileKey, Piece]]) -> None:
        """Record that MEPs are finished and that their events are in these pieces of files."""
        supervised = self.content.supervised(run)
        record: Record = {"run": run, "batch": meps, "pieces": [[key, *piece_row(piece)] for key, piece in pieces]}
        if supervised:
            record["supervised"] = True
        if name := self.content.inputs().get(run):
            record["input"] = name
        self._note(record, lambda: self.content.add_batch(run, meps, pieces, supervised=supervised))
        if self._end > self._compact_at:
            self._compact_grown()

    def use_tck(self, tck: int) -> None:
        """Another trigger configuration decides the batches that begin from now on. Any thread."""
        with self._lock:
            self._tck = tck

    def begin_batch(self, run: int, meps: Ranges) -> None:
        """Record that these MEPs are being computed, until `end_batch`; written, not forced. Any thread.

        A failed write is logged, not raised: the batch can be computed without this record.
        """
        try:
            record: Record = {"run": run, "begin": meps, "tck": self._tck}
            self._note(record, lambda: self.content.begin_batch(run, meps, self._tck))
        except OutputError as error:
            log.warning("begin_not_noted", run=run, error=error.strerror)

    def end_batch(self, run: int, meps: Ranges) -> None:
        """Record that these MEPs were computed, so they cannot cause a later crash. Errors as for `begin_batch`."""
        try:
            self._note({"run": run, "end": meps}, lambda: self.content.end_batch(run, meps))
        except OutputError as error:
            log.warning("end_not_noted", run=run, error=error.strerror)

    def reserve(self, run: int, below: int) -> None:
        """Record that no later session may use the MEP ids of this run below `below`. Errors as for `begin_batch`.

        In the file the last of them begins and ends, so it counts as computed, and not as interrupted.
        """
        last = ((below - 1, below - 1),)
        self.begin_batch(run, last)
        self.end_batch(run, last)

    def interrupted(self, run: int) -> dict[int, int]:
        """MEP id -> number of sessions that ended while the MEP was being computed, for one run. Any thread."""
        with self._lock:
            return self.content.interrupted(run)

    def begun_below(self, run: int) -> int:
        """One more than the largest MEP id of a run that a record of `begin_batch` has. Any thread."""
        with self._lock:
            return self.content.begun_below(run)

    def finished(self, key: FileKey) -> None:
        """Record that a file is about to get its final name."""
        self._note({"finished": key}, lambda: self.content.finish(key))

    def copied(self, key: FileKey, to: FileKey) -> None:
        """Record that another file replaces a file, with the same content at the same offsets."""
        self._note({"copied": key, "to": to}, lambda: self.content.copy(key, to))

    def revoked(self, run: int, meps: Ranges) -> Revocation:
        """Record that MEPs of a run are revoked."""
        return self._note({"run": run, "revoked": meps}, lambda: self.content.revoke(run, meps))

    def run_ended(self, run: int) -> None:
        """Record the end of a run: no MEP of it will be sent again."""
        self._note({"over": run}, lambda: self.content.end_run(run))

    def force(self) -> None:
        """Force the written records to the disk, unless the policy is `never`."""
        if self._fsync is FsyncPolicy.NEVER:
            return
        if self._distrusted:
            self.compact()
        if self._unforced:
            try:
                os.fdatasync(self._descriptor)
            except OSError as error:
                # The kernel forgets the pages that it could not write. All of them are in memory here.
                self._distrusted = True
                raise self._refused(error) from error
            self._unforced = False
        self._directory.sync()

    def replaced(self) -> Path | None:
        """The path of the journal if it was removed or replaced: its records would be lost with this process."""
        with self._lock:
            is_other = self._directory.has_other_file(self._name, self._descriptor)
        return self._directory.path / self._name if is_other else None

    def close(self) -> None:
        """Record a clean end of the session, and close the file."""
        if self._descriptor >= 0:
            self._note({"closed": self._prefix}, lambda: None)
            self.force()
            self.abandon()

    def abandon(self) -> None:
        """Close the descriptor without a record."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def compact(self) -> None:
        """Rewrite the journal with only the records that are still needed."""
        with self._lock:
            self._compact()

    def _compact(self) -> None:
        text = self._text()
        descriptor = self._written(text)
        self._replace(descriptor, len(text))
        self._unforced = False
        if self._fsync is not FsyncPolicy.NEVER:
            self._directory.sync()

    def _text(self) -> bytes:
        return b"".join(map(encode_record, self.content.records(self._prefix)))

    def _written(self, text: bytes) -> int:
        """The descriptor of a new file with this text, which is forced; its name is not that of the journal yet."""
        descriptor = self._directory.open(self._new_name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        try:
            write_all(descriptor, text)
            if self._fsync is not FsyncPolicy.NEVER:
                os.fsync(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise self._refused(error) from error
        return descriptor

    def _replace(self, descriptor: int, size: int) -> None:
        """Give a new file the name of the journal. It has `size` bytes, with all records."""
        try:
            self._directory.rename(self._new_name, self._name)
        except OSError as error:
            os.close(descriptor)
            raise self._refused(error) from error
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._end = size
        self._compact_at = 2 * self._end + COMPACT_BYTES
        self._distrusted = False

    def _note(self, record: Record, apply: Callable[[], Result]) -> Result:
        """Write a record, then apply it to the content."""
        text = encode_record(record)
        with self._lock:
            try:
                write_all(self._descriptor, text)
            except OSError as error:
                # Readers would report an incomplete record as damage.
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._end)
                raise self._refused(error) from error
            self._end += len(text)
            self._unforced = True
            if self._since is not None:
                self._since.append(text)
            return apply()

    def _compact_beside(self) -> None:
        """Rewrite the journal while other threads add records: a decision must not wait until a file is forced."""
        with self._lock:
            text = self._text()
            self._since = []
        try:
            descriptor = self._written(text)
            with self._lock:
                since = b"".join(self._since)
                try:
                    write_all(descriptor, since)
                except OSError as error:
                    os.close(descriptor)
                    raise self._refused(error) from error
                self._replace(descriptor, len(text) + len(since))
                self._unforced = bool(since)
        finally:
            # With the lock: `_note` must not find a list and then none.
            with self._lock:
                self._since = None
        if self._fsync is not FsyncPolicy.NEVER:
            self._directory.sync()

    def _compact_grown(self) -> None:
        try:
            self._compact_beside()
        except OutputError as error:
            log.warning("journal_not_compacted", bytes=self._end, error=error.strerror)
            self._compact_at = self._end + COMPACT_BYTES

    def _refused(self, error: OSError) -> OutputError:
        return error if isinstance(error, OutputError) else OutputError(self._directory.path / self._name, error)
