"""Input files of a replay: their kinds, and checks that they do not change."""

import gzip
import os
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hltnode.protocol.raw_data.file_format import FileFormat, format_of
from hltnode.protocol.raw_data.mdf import GENERIC_HEADER_SIZE


class FeedError(ValueError):
    """An input cannot be replayed; the message names the file."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """An event file and its identity when it was found."""

    path: Path
    kind: FileFormat
    """The format of the unpacked file."""
    identity: tuple[int, int, int, int]
    """Device, inode, size in bytes, and modification time in ns."""

    def check_unchanged(self) -> None:
        """Raise FeedError if the file changed: its sources may differ from the announced ones."""
        try:
            now = _identity(os.stat(self.path))
        except OSError as error:
            raise FeedError(f"{self.path}: the file disappeared during the replay: {error.strerror}") from error
        if now != self.identity:
            raise FeedError(
                f"{self.path}: the file changed during the replay: {self.identity[2]} bytes before, {now[2]} now"
            )


@dataclass(frozen=True, slots=True)
class InputFiles:
    """All files of a replay in reading order, and the skipped files of the folders."""

    files: tuple[InputFile, ...]
    left_out: dict[Path, str]
    """Skipped files in the given folders, with their kinds."""

    @property
    def kind(self) -> FileFormat:
        """The kind of all files. Run-3 MEPs keep their packing."""
        return self.files[0].kind

    @property
    def n_bytes(self) -> int:
        """Total size in bytes."""
        return sum(file.identity[2] for file in self.files)

    def only(self, paths: Collection[Path]) -> "InputFiles":
        """The files with these paths."""
        return InputFiles(tuple(file for file in self.files if file.path in paths), self.left_out)

    def paths(self) -> Iterator[Path]:
        """Yield each path for one pass; checks a file before it is read and before the next one.

        Raises FeedError for a file that changed.
        """
        for file in self.files:
            file.check_unchanged()
            yield file.path
            file.check_unchanged()

    def check_unchanged(self) -> None:
        """Raise FeedError for the first file that changed: its content may be inconsistent."""
        for file in self.files:
            file.check_unchanged()


def find_inputs(given: Sequence[Path]) -> InputFiles:
    """The event files among the given paths; folders are read in order of file names.

    Another kind of file is an error if given by name, and skipped if it lies in a folder. Raises FeedError, also for
    kinds that cannot be replayed together.
    """
    files: list[InputFile] = []
    left_out: dict[Path, str] = {}
    for path in given:
        if not path.is_dir():
            files.append(recognise(path))
            continue
        found = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith(".")]
        n_before = len(files)
        for entry in found:
            try:
                files.append(recognise(entry))
            except FeedError as error:
                left_out[entry] = str(error).removeprefix(f"{entry}: ")
        if len(files) == n_before:
            raise FeedError(f"{path}: no event file among {len(found)} files")
    of_kind = {kind: [file.path for file in files if file.kind is kind] for kind in FileFormat}
    if of_kind[FileFormat.MEP] and len(of_kind[FileFormat.MEP]) < len(files):
        counts = ", ".join(f"{len(paths)} {kind} ({paths[0]} ...)" for kind, paths in of_kind.items() if paths)
        raise FeedError(f"Run-3 MEP files and other files cannot be replayed together: {counts}")
    return InputFiles(tuple(files), left_out)


def recognise(path: Path) -> InputFile:
    """The event file of a path. Raises FeedError for another kind of file."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # Opening a pipe would wait for its writer; also, files are read more than once.
            raise FeedError(f"{path}: is neither a file nor a folder")
        with path.open("rb") as file:
            identity = _identity(os.fstat(file.fileno()))
            head = file.read(GENERIC_HEADER_SIZE)
            is_packed = format_of(head) is FileFormat.GZIP
            if is_packed:
                file.seek(0)
                with gzip.open(file) as unpacked:
                    head = unpacked.read(GENERIC_HEADER_SIZE)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FeedError(f"{path}: is a damaged gzip file: {error}") from error
    except OSError as error:
        raise FeedError(f"{path}: cannot be read: {error.strerror}") from error
    if not head:
        raise FeedError(f"{path}: is empty")
    kind = format_of(head)
    if kind is None or (is_packed and kind is FileFormat.GZIP):
        raise FeedError(f"{path}: is neither MDF nor MEP")
    if is_packed and kind is not FileFormat.MDF:
        raise FeedError(f"{path}: is a {kind} in a gzip file: unpack it, only MDF is read as gzip")
    return InputFile(path, kind, identity)


def _identity(stat: os.stat_result) -> tuple[int, int, int, int]:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
