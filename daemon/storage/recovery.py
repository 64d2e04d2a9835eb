"""The start of a session: recovery of event files and journal after a stop, a kill or a power cut.

Recovery deletes no data and opens no finished file. Bytes of a .part file that the journal names stay; the other bytes
go to quarantine before the file is truncated. Events that the journal names but no file holds are reported as missing.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import EventStream, FsyncPolicy, QuarantineReason, SlowConsumerPolicy
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.daemon.storage.event_files import (
    FINAL_SUFFIX,
    NEW_SUFFIX,
    PART_SUFFIX,
    Extent,
    FileKey,
    FileState,
    Piece,
    files_of,
)
from hltnode.daemon.storage.event_store import LOGGED_RANGES, EventStore
from hltnode.daemon.storage.event_writer import EventWriter
from hltnode.daemon.storage.file_bytes import blocks, checksum, count_records
from hltnode.daemon.storage.journal import Journal
from hltnode.daemon.storage.journal_content import JournalContent, Loss
from hltnode.daemon.storage.journal_format import scan_records
from hltnode.daemon.storage.output_directory import OutputDirectory, OutputError
from hltnode.daemon.storage.quarantine import Quarantine

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

log = get_logger("recovery")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Limits of a file, fsync policy, policy of each stream when a write fails, and the TCK of the session."""

    max_file_bytes: int
    max_file_events: int
    fsync: FsyncPolicy
    policies: Mapping[EventStream, SlowConsumerPolicy] = field(default_factory=dict)
    tck: int = 0


def boot_id() -> str:
    """Identifier of the current boot of this machine; empty if the system has none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def take_over(
    path: Path, node: str, session: str, counters: WriterCounters, settings: StoreSettings, *, boot: str
) -> EventStore:
    """Recover the files of earlier sessions of a node, and open the directory for the session `session`.

    Args:
        path: the directory, created if its parent exists.
        session: name without underscore.
        boot: the current `boot_id`. If the journal has another one, the machine was restarted since.

    Raises:
        OutputError: a file cannot be read or written.
    """
    directory = OutputDirectory(path)
    try:
        quarantine = Quarantine(directory, counters, settings.fsync)
        name, prefix = f"{node}.journal", f"{node}_{session}"
        _report_missing_journal(directory, name, node)
        content, damaged = read_journal(directory, name, quarantine, counters)
        was_down = _report_power_cut(content, boot, settings.fsync, counters)
        _recover_files(directory, content, node, quarantine, counters, doubtful=damaged and not was_down)
        journal = Journal(directory, name, prefix, content, boot=boot, fsync=settings.fsync, tck=settings.tck)
        writer = EventWriter(
            directory,
            prefix,
            counters,
            max_file_bytes=settings.max_file_bytes,
            max_file_events=settings.max_file_events,
            policies=settings.policies,
        )
        store = EventStore(directory, prefix, writer, journal, quarantine, counters, settings.fsync)
        store.finish_files()
    except BaseException:
        directory.close()
        raise
    return store


def read_journal(
    directory: OutputDirectory, name: str, quarantine: Quarantine, counters: WriterCounters
) -> tuple[JournalContent, bool]:
    """The content of a journal (empty if there is none), and whether a part of it is damaged.

    A damaged journal is copied to quarantine, because the journal that replaces it holds only the readable records.
    """
    content = JournalContent()
    size = directory.size(name)
    if size is None:
        return content, False
    descriptor = directory.open(name, os.O_RDONLY)
    try:
        raw = b"".join(blocks(descriptor, 0, size))
    except OSError as error:
        raise OutputError(directory.path / name, error) from error
    finally:
        os.close(descriptor)
    scan = scan_records(raw)
    unknown = 0
    for record in scan.records:
        try:
            content.apply(record)
        except (LookupError, TypeError, ValueError) as error:
            unknown += 1
            log.error("journal_record_unknown", error=str(error))
    damage = len(scan.damage) + unknown
    if damage:
        counters.journal_damage += damage
        log.critical(
            "journal_damaged",
            path=str(directory.path / name),
            places=[list(place) for place in scan.damage[:LOGGED_RANGES]],
            bytes=sum(end - begin for begin, end in scan.damage),
            unknown_records=unknown,
            intact_records=len(scan.records) - unknown,
        )
        quarantine.keep_copy(name, QuarantineReason.DAMAGED)
    return content, damage > 0


def _report_missing_journal(directory: OutputDirectory, name: str, node: str) -> None:
    """Warn if earlier sessions left finished files and no journal, as after a journal was deleted or files were copied.

    The events of these files are unknown to the node: if feeders send them again, they are stored twice.
    """
    if directory.size(name) is not None:
        return
    finished = sorted(files_of(node, directory.names(), FINAL_SUFFIX))
    if finished:
        log.warning(
            "journal_missing",
            path=str(directory.path / name),
            finished_files=len(finished),
            first=finished[0].final,
            last=finished[-1].final,
            effect="MEPs of these files that feeders send again are stored twice",
            advice="restore the journal, or move the files away, before a run among them is continued",
        )


def _report_power_cut(content: JournalContent, boot: str, fsync: FsyncPolicy, counters: WriterCounters) -> bool:
    """Report sessions without a clean end before a restart of the machine, whose unforced data may be lost."""
    cut = [prefix for prefix, of_session in content.sessions.items() if of_session and boot and of_session != boot]
    if cut:
        counters.power_cuts += 1
        log.critical("machine_was_down", sessions=cut, fsync=fsync)
    return bool(cut)


def _recover_files(
    directory: OutputDirectory,
    content: JournalContent,
    node: str,
    quarantine: Quarantine,
    counters: WriterCounters,
    *,
    doubtful: bool,
) -> None:
    names = directory.names()
    parts = set(files_of(node, names, PART_SUFFIX))
    for key in {*files_of(node, names, NEW_SUFFIX)} - {*content.files} - parts:
        quarantine.move(key.new, QuarantineReason.DAMAGED)
    lost: dict[FileKey, Callable[[Piece], bool]] = {}
    for key in sorted({*content.files, *parts}):
        try:
            if key in parts:
                if (is_lost := _recover_part(directory, key, content, quarantine)) is not None:
                    lost[key] = is_lost
            elif directory.size(key.new) is None and not _was_finished(directory, key, content.files[key], doubtful):
                lost[key] = lambda _piece: True
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(directory.path / key.part, error) from error
    if lost:
        _report_loss(content.lose(lost), counters)
    for key in [key for key in content.files if key not in parts and directory.size(key.new) is None]:
        content.forget(key)


def _was_finished(directory: OutputDirectory, key: FileKey, state: FileState, doubtful: bool) -> bool:
    """Whether a file without .part file had its final name; a collector may have removed it since.

    The record `finished` is forced before the rename. If the journal is damaged, but not by a power cut, that record
    may be the damaged one, and no .part file can be lost. Then the file counts as finished: a MEP wrongly reported as
    missing would be sent and stored twice.
    """
    return state.finished or doubtful or directory.size(key.final) is not None


def _recover_part(
    directory: OutputDirectory, key: FileKey, content: JournalContent, quarantine: Quarantine
) -> Callable[[Piece], bool] | None:
    """Truncate a .part file after the last byte in the journal; returns a predicate for its missing pieces."""
    state = content.files.get(key)
    if directory.size(key.new) is not None:
        # An incomplete copy, or one that was not renamed yet: it is made again.
        directory.unlink(key.new)
    descriptor = directory.open(key.part, os.O_RDWR)
    try:
        size = os.fstat(descriptor).st_size
        if state is None:
            events = count_records(descriptor, 0, size)
        else:
            state.finished = False
            if size > state.end:
                quarantine.copy_extents(key, descriptor, [Extent(state.end, size, QuarantineReason.NOT_ACKNOWLEDGED)])
                os.ftruncate(descriptor, state.end)
            # The earlier session may not have forced the file.
            os.fsync(descriptor)
            missing = {
                piece.begin
                for piece in state.pieces
                if piece.kept and (piece.end > size or checksum(descriptor, piece.begin, piece.end) != piece.crc)
            }
    finally:
        os.close(descriptor)
    if state is None:
        if size:
            quarantine.move(key.part, QuarantineReason.NOT_ACKNOWLEDGED, events)
        else:
            directory.unlink(key.part)
        return None
    log.warning("file_recovered", path=key.part, bytes=state.end, surplus_bytes=max(size - state.end, 0))
    return (lambda piece: piece.begin in missing) if missing else None


def _report_loss(loss: Loss, counters: WriterCounters) -> None:
    counters.missing_events += loss.events
    log.critical(
        "events_missing",
        events=loss.events,
        not_acknowledged_any_more={run: meps[:LOGGED_RANGES] for run, meps in loss.meps.items()},
        incomplete={run: meps[:LOGGED_RANGES] for run, meps in loss.incomplete.items()},
    )
