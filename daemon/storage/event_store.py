"""The event store of a session: events go to files, then their MEPs to the journal; then they may be acknowledged.

A file gets its final name when its content can no longer change: its data and its journal records are forced to disk
(unless `fsync` is `never`), and in a supervised run no feeder can revoke one of its MEPs.
"""

import errno
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import EventStream, FsyncPolicy, QuarantineReason
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.daemon.storage.event_files import FINAL_SUFFIX, Extent, FileKey, files_of
from hltnode.daemon.storage.event_writer import EventWriter
from hltnode.daemon.storage.file_bytes import copy_bytes, write_all
from hltnode.daemon.storage.journal import Journal
from hltnode.daemon.storage.journal_content import Ranges, Stored
from hltnode.daemon.storage.output_directory import OutputDirectory, OutputError
from hltnode.daemon.storage.quarantine import Quarantine
from hltnode.daemon.storage.record_block import RecordBlock
from hltnode.daemon.storage.tck_file import write_tck
from hltnode.processing.selection.configuration.tck import TckDocument

# Largest number of MEP ranges in one log line.
LOGGED_RANGES = 32

log = get_logger("event_store")


class EventStore:
    """Writer, journal and quarantine of a session; made by `recovery.take_over`.

    Calls come from one thread at a time; `problem` may be read from any thread. Methods raise OutputError when a write
    fails; no data are lost then, and the same call may be repeated.
    """

    def __init__(
        self,
        directory: OutputDirectory,
        prefix: str,
        writer: EventWriter,
        journal: Journal,
        quarantine: Quarantine,
        counters: WriterCounters,
        fsync: FsyncPolicy,
    ) -> None:
        self.journal = journal
        self._directory = directory
        self._prefix = prefix
        self._writer = writer
        self._quarantine = quarantine
        self._counters = counters
        self._fsync = fsync
        self._confirmed: dict[int, int] = {}
        self._stored_at_end: dict[int, dict[EventStream, Stored]] = {}
        """Totals of runs that ended, until their summary is written."""
        self._refusal: str | None = None
        self._moved: str | None = None
        self._own: list[Callable[[], Path | None]] = [journal.replaced]

    @property
    def problem(self) -> str | None:
        """Why events cannot be written or do not appear in the configured directory; None if they do."""
        return self._writer.problem or self._refusal or self._moved

    def append(self, stream: EventStream, block: RecordBlock) -> None:
        """Queue MDF records. They are in a file only after the next `commit` has returned."""
        self._writer.append(stream, block)

    def commit(self, run: int, meps: Ranges) -> None:
        """Write the queued records, then mark these MEPs finished in the journal; then they may be acknowledged."""
        with self._refusals():
            self._require_own_files()
            self._writer.flush()
            if self._fsync is FsyncPolicy.FLUSH:
                self._writer.force(self.journal.copied)
            self.journal.batch(run, meps, self._writer.written)
            self._writer.written.clear()
            if self._fsync is FsyncPolicy.FLUSH:
                self.journal.force()
                self._move_retired()

    def own(self, replaced: Callable[[], Path | None]) -> None:
        """Acknowledge only while a further file, such as the lock, is in its place."""
        self._own.append(replaced)

    def check_files(self) -> None:
        """Update `problem` by the places of the journal, the lock and the directory, while nothing is written."""
        with suppress(OutputError), self._refusals():
            self._require_own_files()

    def _require_own_files(self) -> None:
        """Raise OutputError if the journal or the lock was removed or replaced under the running node."""
        for replaced in self._own:
            if (path := replaced()) is not None:
                text = "it was removed or replaced while the node runs: put it back, or restart the node"
                raise OutputError(path, OSError(errno.ESTALE, text))

    def supervise(self, run: int) -> None:
        """Allow feeders to revoke MEPs of a run: its files keep their .part names until their MEPs are confirmed."""
        self.journal.content.supervise(run)

    def name_input(self, run: int, name: str) -> None:
        """Keep the name of the input of a run with its MEPs."""
        self.journal.content.name_input(run, name)

    def confirm(self, run: int, below: int) -> None:
        """Confirm that no feeder can revoke a MEP of this run below id `below`."""
        self._confirmed[run] = max(below, self._confirmed.get(run, 0))
        self.finish_files()

    def leave_run(self, run: int) -> None:
        """Close the files of a run that may continue later, in this session or another."""
        with self._refusals():
            self._writer.close_files(run)
        self.finish_files()

    def end_run(self, run: int) -> None:
        """Finish the files of a run and remove it from the journal; none of its MEPs may be sent or revoked later."""
        with self._refusals():
            self._writer.close_files(run)
        self.finish_files(ended=run)
        if stored := self.journal.content.stored(run):
            self._stored_at_end[run] = stored
        with self._refusals():
            self.journal.run_ended(run)
            self.journal.force()
        self._confirmed.pop(run, None)

    def revoke(self, run: int, meps: Ranges) -> None:
        """Revoke MEPs. Their events go to quarantine when their files get their final names."""
        with self._refusals():
            found = self.journal.revoked(run, meps)
            out_of_reach = found.out_of_reach.ranges()
            if out_of_reach:
                count = sum(last - first + 1 for first, last in out_of_reach)
                self._counters.out_of_reach_meps += count
                log.critical("events_out_of_reach", run=run, meps=out_of_reach[:LOGGED_RANGES], n_meps=count)
            if found.events:
                log.warning("events_revoked", run=run, events=found.events)
            self.journal.force()

    def finish_files(self, ended: int | None = None) -> None:
        """Give their final names to the files whose content can no longer change, including all files of an ended run.

        Events that leave such a file go to quarantine first.
        """
        with self._refusals():
            if not self._ready(ended):
                return
            if self._fsync is not FsyncPolicy.NEVER:
                self._writer.force(self.journal.copied)
            # Computed again: a file that could not be forced was replaced by a copy with another name.
            ready = self._ready(ended)
            for key in ready:
                self._prepare(key)
            self.journal.force()
            self._move_retired()
            for key in ready:
                self._give_final_name(key)
            self._force_names()

    def close(self) -> None:
        """End the session: finish the files that can be finished, and record a clean end in the journal."""
        with self._refusals():
            self._writer.close_files()
        self.finish_files()
        with self._refusals():
            self.journal.close()

    def abandon(self) -> int:
        """Close the descriptors without writing; returns the number of unwritten bytes."""
        left = self._writer.abandon()
        self.journal.abandon()
        self._directory.close()
        return left

    def keep_tck(self, document: TckDocument) -> str:
        """Write a trigger configuration beside the events that it accepts; returns its file name."""
        with self._refusals():
            return write_tck(self._directory, document)

    def write_summary(self, summary: dict[str, Any]) -> str:
        """Write the summary of a run, with the names and sizes of its finished files; returns its name.

        `files` are those of this session, `files_of_killed_sessions` those of earlier sessions, because a killed
        session writes no summary; both without the files that another summary names. `stored` counts the files, events
        and bytes of the run in all its sessions, also those before a kill.
        """
        with self._refusals():
            stem = f"{self._prefix}_{summary['run']:010d}"
            names = self._directory.names()
            unnamed = self._unnamed_files(names, summary["run"])
            files = {name: self._directory.size(name) for name in unnamed if name.startswith(f"{stem}_")}
            earlier = {name: self._directory.size(name) for name in unnamed if name not in files}
            stored = self._stored_at_end.get(summary["run"]) or self.journal.content.stored(summary["run"])
            # This session may have left the run and continued it later.
            part = 1 + sum(name.startswith(f"{stem}_summary") and name.endswith(".json") for name in names)
            name = f"{stem}_summary.json" if part == 1 else f"{stem}_summary_{part}.json"
            new = f"{stem}_summary.new"
            content = {
                **summary,
                "stored": {stream: asdict(stored.get(stream, Stored())) for stream in EventStream},
                "files": files,
                "files_of_killed_sessions": earlier,
            }
            descriptor = self._directory.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                write_all(descriptor, json.dumps(content, indent=1).encode() + b"\n")
            except OSError as error:
                raise OutputError(self._directory.path / new, error) from error
            finally:
                os.close(descriptor)
            self._directory.rename(new, name)
            self._stored_at_end.pop(summary["run"], None)
            return name

    def _unnamed_files(self, names: list[str], run: int) -> list[str]:
        """The finished files of a run, from any session of this node, that no summary names yet."""
        node = self._prefix.rpartition("_")[0]
        named: set[str] = set()
        pattern = re.compile(rf"{re.escape(node)}_[^_]+_{run:010d}_summary(_\d+)?\.json")
        for name in filter(pattern.fullmatch, names):
            try:
                with open(self._directory.open(name, os.O_RDONLY), "rb") as file:
                    content = json.load(file)
                named.update(content["files"], content.get("files_of_killed_sessions", ()))
            except (OSError, ValueError, TypeError, KeyError) as error:
                log.warning("summary_unreadable", path=str(self._directory.path / name), error=repr(error))
        return sorted(
            key.final for key in files_of(node, names, FINAL_SUFFIX) if key.run == run and key.final not in named
        )

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Keep the reason of a failure for `problem`."""
        try:
            yield
        except OutputError as error:
            if self._writer.problem is None:
                self._counters.errors[error.kind] += 1
                refusal = f"{error.filename}: {error.strerror}"
                if refusal != self._refusal:
                    log.error("disk_refused", kind=error.kind, path=error.filename, error=error.strerror)
                self._refusal = refusal
            raise
        if self._refusal is not None:
            log.info("disk_recovered", was=self._refusal)
        self._refusal = None
        moved = self._directory.moved()
        if moved is not None and moved != self._moved:
            log.critical("output_directory_moved", problem=moved)
        self._moved = moved

    def _ready(self, ended: int | None) -> list[FileKey]:
        """The files whose content can no longer change."""
        content, confirmed = self.journal.content, self._confirmed
        unknown = {key for key, _ in self._writer.written}
        return [
            key
            for key, state in content.files.items()
            if key not in unknown
            and not self._writer.is_open(key)
            and (
                state.finished
                or key.run == ended
                or not content.supervised(key.run)
                or state.last_mep < confirmed.get(key.run, 0)
            )
        ]

    def _prepare(self, key: FileKey) -> None:
        """Copy the events that leave a file to quarantine, and record that the file is about to get its final name."""
        state = self.journal.content.files[key]
        size = self._directory.size(key.part)
        if state.finished or size is None:
            return
        extents = state.extents(size)
        if any(extent.reason for extent in extents):
            descriptor = self._directory.open(key.part, os.O_RDONLY)
            try:
                self._quarantine.copy_extents(key, descriptor, extents)
                kept = [extent for extent in extents if extent.reason is None]
                if kept:
                    self._write_new(key, descriptor, kept)
            except OutputError:
                raise
            except OSError as error:
                raise OutputError(self._directory.path / key.part, error) from error
            finally:
                os.close(descriptor)
        self.journal.finished(key)

    def _write_new(self, key: FileKey, source: int, kept: list[Extent]) -> None:
        """Copy what stays in a file to the file that will take its place."""
        descriptor = self._directory.open(key.new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            for extent in kept:
                copy_bytes(source, extent.begin, extent.end, descriptor)
            if self._fsync is not FsyncPolicy.NEVER:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._force_names()

    def _give_final_name(self, key: FileKey) -> None:
        state = self.journal.content.files[key]
        directory = self._directory
        has_part, has_new = directory.size(key.part) is not None, directory.size(key.new) is not None
        if directory.size(key.final) is not None:
            # No order of our calls leads here; a finished file is never replaced.
            for name in [key.part] * has_part + [key.new] * has_new:
                self._quarantine.move(name, QuarantineReason.DAMAGED)
        elif state.rows():
            if has_part and has_new:
                # First: if a kill left both files, recovery would finish the events twice.
                directory.unlink(key.part)
            if has_part or has_new:
                directory.rename(key.new if has_new else key.part, key.final)
                self._counters.streams[key.stream].files += 1
        elif has_part:
            # Its whole content is in quarantine.
            directory.unlink(key.part)
        self._writer.release(key)
        self.journal.content.forget(key)

    def _move_retired(self) -> None:
        """Move replaced files to quarantine, after the journal names their copies."""
        while self._writer.retired:
            self._quarantine.move(self._writer.retired[0].part, QuarantineReason.DAMAGED)
            del self._writer.retired[0]

    def _force_names(self) -> None:
        if self._fsync is not FsyncPolicy.NEVER:
            self._directory.sync()
