"""The open journal: what is finished is written to it before it is acknowledged (docs/formats/node-files.md).

After a kill everything that was written is there; after a power cut what was forced. The journal is rewritten from its
content in memory, which is complete; the old one stays in its place until the new one is forced.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import FsyncPolicy
from hltnode.daemon.storage.event_files import FileKey, Piece
from hltnode.daemon.storage.file_bytes import write_all
from hltnode.daemon.storage.journal_content import JournalContent, Ranges, Revocation, piece_row
from hltnode.daemon.storage.journal_format import Record, encode_record
from hltnode.daemon.storage.output_directory import OutputDirectory, OutputError

# The journal is rewritten when it has grown by this much, and to twice its size; a batch takes some hundred bytes.
COMPACT_BYTES = 4 * 1024 * 1024

Result = TypeVar("Result")

log = get_logger("journal")


class Journal:
    """The journal of a session. All calls from one thread at a time, but `begin_batch`, `end_batch` and `interrupted`
    from any.

    All methods raise OutputError when the disk refuses, and may then be called again.

    Args:
        name: of the file; one that is there is replaced.
        prefix: start of the names of this session's event files.
        boot: names the time for which the machine has been up.
        content: what the journals of earlier sessions said, after the files were recovered.
        tck: key of the trigger configuration of this session.
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
        content.sessions.clear()
        content.begin_session(prefix, boot)
        self.compact()

    def batch(self, run: int, meps: Ranges, pieces: Sequence[tuple[FileKey, Piece]]) -> None:
        """These MEPs are finished, and their events are in these pieces of files."""
        supervised = self.content.supervised(run)
        record: Record = {"run": run, "batch": meps, "pieces": [[key, *piece_row(piece)] for key, piece in pieces]}
        if supervised:
            record["supervised"] = True
        self._note(record, lambda: self.content.add_batch(run, meps, pieces, supervised=supervised))
        if self._end > self._compact_at:
            self._compact_grown()

    def begin_batch(self, run: int, meps: Ranges) -> None:
        """These MEPs are being computed from now on, until `end_batch`; written, not forced. Any thread.

        What the disk refuses is logged and not raised: the batch can be computed without.
        """
        try:
            record: Record = {"run": run, "begin": meps, "tck": self._tck}
            self._note(record, lambda: self.content.begin_batch(run, meps, self._tck))
        except OutputError as error:
            log.warning("begin_not_noted", run=run, error=error.strerror)

    def end_batch(self, run: int, meps: Ranges) -> None:
        """These MEPs are computed: if the session ends now, it is not their doing. As `begin_batch`."""
        try:
            self._note({"run": run, "end": meps}, lambda: self.content.end_batch(run, meps))
        except OutputError as error:
            log.warning("end_not_noted", run=run, error=error.strerror)

    def interrupted(self, run: int) -> dict[int, int]:
        """MEPs of a run with the number of sessions that ended while they were being computed. Any thread."""
        with self._lock:
            return self.content.interrupted(run)

    def finished(self, key: FileKey) -> None:
        """A file is about to get its final name."""
        self._note({"finished": key}, lambda: self.content.finish(key))

    def copied(self, key: FileKey, to: FileKey) -> None:
        """What was in a file is now at the same places of another one."""
        self._note({"copied": key, "to": to}, lambda: self.content.copy(key, to))

    def revoked(self, run: int, meps: Ranges) -> Revocation:
        """Take MEPs of a run back."""
        return self._note({"run": run, "revoked": meps}, lambda: self.content.revoke(run, meps))

    def run_ended(self, run: int) -> None:
        """Nothing of a run will be sent again."""
        self._note({"over": run}, lambda: self.content.end_run(run))

    def force(self) -> None:
        """Force what was written to the disk, unless the policy is `never`."""
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

    def close(self) -> None:
        """This session ends in order."""
        if self._descriptor >= 0:
            self._note({"closed": self._prefix}, lambda: None)
            self.force()
            self.abandon()

    def abandon(self) -> None:
        """Close the descriptor, as the end of the process does."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def compact(self) -> None:
        """Rewrite the journal with what is still needed."""
        with self._lock:
            self._compact()

    def _compact(self) -> None:
        new = f"{self._name}.new"
        text = b"".join(map(encode_record, self.content.records(self._prefix)))
        descriptor = self._directory.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        try:
            write_all(descriptor, text)
            if self._fsync is not FsyncPolicy.NEVER:
                os.fsync(descriptor)
            self._directory.rename(new, self._name)
        except OSError as error:
            os.close(descriptor)
            raise self._refused(error) from error
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._end = len(text)
        self._compact_at = 2 * self._end + COMPACT_BYTES
        self._unforced = self._distrusted = False
        if self._fsync is not FsyncPolicy.NEVER:
            self._directory.sync()

    def _note(self, record: Record, apply: Callable[[], Result]) -> Result:
        """Write a record, then apply it to the content."""
        text = encode_record(record)
        with self._lock:
            try:
                write_all(self._descriptor, text)
            except OSError as error:
                # Readers skip an incomplete record; without it they have no damage to report.
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._end)
                raise self._refused(error) from error
            self._end += len(text)
            self._unforced = True
            return apply()

    def _compact_grown(self) -> None:
        try:
            self.compact()
        except OutputError as error:
            log.warning("journal_not_compacted", bytes=self._end, error=error.strerror)
            self._compact_at = self._end + COMPACT_BYTES

    def _refused(self, error: OSError) -> OutputError:
        return error if isinstance(error, OutputError) else OutputError(self._directory.path / self._name, error)
