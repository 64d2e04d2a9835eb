"""The quarantine: a folder for events that recovery or a revocation takes out of event files. Each is counted.

The node never changes or removes a file in it.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import FsyncPolicy, QuarantineReason
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.daemon.storage.event_files import FINAL_SUFFIX, PART_SUFFIX, Extent, FileKey
from hltnode.daemon.storage.file_bytes import checksum, copy_bytes, count_records
from hltnode.daemon.storage.output_directory import OutputDirectory, OutputError

FOLDER = "quarantine"

log = get_logger("quarantine")


class Quarantine:
    """The folder `quarantine` of the output directory, created at its first use.

    All methods raise OutputError. When they return, the copies are on the disk (unless `fsync` is `never`).
    """

    def __init__(self, directory: OutputDirectory, counters: WriterCounters, fsync: FsyncPolicy) -> None:
        self._directory = directory
        self._counters = counters
        self._fsync = fsync

    def copy_extents(self, key: FileKey, descriptor: int, extents: Sequence[Extent]) -> None:
        """Copy the extents that leave a .part file, to one file per reason.

        The file names end in the reason and the first byte. A repetition after a kill writes the same names again.
        """
        for reason in QuarantineReason:
            taken = [extent for extent in extents if extent.reason is reason]
            if not taken:
                continue
            stem = f"{key.stem}_{reason}_{taken[0].begin}"
            name = self._copy(stem, FINAL_SUFFIX, descriptor, [(extent.begin, extent.end) for extent in taken])
            events = sum(
                extent.events or count_records(descriptor, extent.begin, extent.end)
                if reason is QuarantineReason.NOT_ACKNOWLEDGED
                else extent.events
                for extent in taken
            )
            self._count(reason, events, source=key.part, name=name)

    def move(self, name: str, reason: QuarantineReason, events: int = 0) -> None:
        """Move a whole file into the quarantine."""
        folder = self._directory.subdirectory(FOLDER)
        final = name.removesuffix(PART_SUFFIX) + f"_{reason}{FINAL_SUFFIX}" if name.endswith(PART_SUFFIX) else name
        target = next(free for free in _numbered(final) if folder.size(free) is None)
        self._directory.rename(name, target, folder)
        self._force(folder)
        self._count(reason, events, source=name, name=target)

    def keep_copy(self, name: str, reason: QuarantineReason) -> None:
        """Copy a whole file into the quarantine; the original stays."""
        descriptor = self._directory.open(name, os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            path = PurePath(name)
            target = self._copy(path.stem, path.suffix, descriptor, [(0, size)])
        finally:
            os.close(descriptor)
        self._count(reason, 0, source=name, name=target)

    def _copy(self, stem: str, suffix: str, source: int, spans: Sequence[tuple[int, int]]) -> str:
        """Copy byte ranges of an open file to a free name, or find a file with the same content; returns the name."""
        folder = self._directory.subdirectory(FOLDER)
        new = f"{stem}{suffix}.new"
        descriptor = folder.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            for begin, end in spans:
                copy_bytes(source, begin, end, descriptor)
            if self._fsync is not FsyncPolicy.NEVER:
                os.fsync(descriptor)
            for target in _numbered(stem + suffix):
                if folder.size(target) is None:
                    folder.rename(new, target)
                    break
                if self._same(folder, target, descriptor):
                    folder.unlink(new)
                    break
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(folder.path / new, error) from error
        finally:
            os.close(descriptor)
        self._force(folder)
        return target

    def _same(self, folder: OutputDirectory, name: str, descriptor: int) -> bool:
        size = os.fstat(descriptor).st_size
        if folder.size(name) != size:
            return False
        other = folder.open(name, os.O_RDONLY)
        try:
            same = checksum(other, 0, size) == checksum(descriptor, 0, size)
            if same and self._fsync is not FsyncPolicy.NEVER:
                os.fsync(other)
        finally:
            os.close(other)
        return same

    def _force(self, folder: OutputDirectory) -> None:
        if self._fsync is not FsyncPolicy.NEVER:
            folder.sync()
            self._directory.sync()

    def _count(self, reason: QuarantineReason, events: int, *, source: str, name: str) -> None:
        self._counters.quarantined_events[reason] += events
        self._counters.quarantined_files[reason] += 1
        level = log.warning if reason is QuarantineReason.NOT_ACKNOWLEDGED else log.critical
        level("quarantined", file=source, to=f"{FOLDER}/{name}", reason=reason, events=events)


def _numbered(name: str) -> Iterator[str]:
    path = PurePath(name)
    yield name
    yield from (f"{path.stem}.{n}{path.suffix}" for n in itertools.count(2))
