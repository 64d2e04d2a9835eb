"""Records the calls of a program on a directory, and gives the possible states of the disk after a power cut.

The model: what was forced is there. Of everything since, a disk may have written any part: of a file any pages, each as
it was at any time since it was forced, and any size in between; of names (creation, renaming, removal) any, each whole.
After a kill without a power cut everything is there.
"""

import fcntl
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import Any

import pytest

# Smaller than real pages, so that the small files of a test have several.
PAGE = 64


class Kind(Enum):
    WRITE = auto()
    TRUNCATE = auto()
    FORCE = auto()
    CREATE = auto()
    RENAME = auto()
    UNLINK = auto()
    MKDIR = auto()
    FORCE_NAMES = auto()
    MARK = auto()


Place = tuple[str, str]
"""A directory (relative, "" for the first one) and a name in it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call; `file` numbers the files in the order of their creation."""

    kind: Kind
    file: int = -1
    offset: int = 0
    data: bytes = b""
    place: Place = ("", "")
    to: Place = ("", "")
    mark: Any = None


class RecordedFileSystem:
    """Records the calls of this process that change a directory; `recording` replaces the functions of `os`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: list[Call] = []
        self._names: dict[Place, int] = {}
        self._files = 0
        self._file_of: dict[int, int] = {}
        self._directory_of: dict[int, str] = {}

    def mark(self, mark: Any) -> None:
        """Something is true from here on."""
        self.calls.append(Call(Kind.MARK, mark=mark))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the calls inside the context."""
        with pytest.MonkeyPatch.context() as patch:
            real = {name: getattr(os, name) for name in _RECORDED}
            for name in _RECORDED:
                patch.setattr(os, name, partial(getattr(self, f"_note_{name}"), real[name]))
            yield

    def _place(self, path: Any, dir_fd: int | None) -> Place | None:
        if dir_fd in self._directory_of:
            return self._directory_of[dir_fd], str(path)
        return ("", ".") if Path(path) == self.root else None

    def _note_open(self, real: Any, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        descriptor: int = real(path, flags, mode, dir_fd=dir_fd)
        place = self._place(path, dir_fd)
        if place is None:
            return descriptor
        if flags & os.O_DIRECTORY:
            self._directory_of[descriptor] = "" if place == ("", ".") else place[1]
            return descriptor
        if place not in self._names:
            self._names[place] = self._files
            self._files += 1
            self.calls.append(Call(Kind.CREATE, self._names[place], place=place))
        elif flags & os.O_TRUNC:
            self.calls.append(Call(Kind.TRUNCATE, self._names[place], 0))
        self._file_of[descriptor] = self._names[place]
        return descriptor

    def _note_write(self, real: Any, descriptor: int, data: bytes | memoryview) -> int:
        if descriptor not in self._file_of:
            return int(real(descriptor, data))
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        at = os.fstat(descriptor).st_size if flags & os.O_APPEND else os.lseek(descriptor, 0, os.SEEK_CUR)
        written: int = real(descriptor, data)
        self.calls.append(Call(Kind.WRITE, self._file_of[descriptor], at, bytes(data[:written])))
        return written

    def _note_ftruncate(self, real: Any, descriptor: int, size: int) -> None:
        real(descriptor, size)
        self.calls.append(Call(Kind.TRUNCATE, self._file_of[descriptor], size))

    def _note_fsync(self, _real: Any, descriptor: int) -> None:
        if descriptor in self._directory_of:
            self.calls.append(Call(Kind.FORCE_NAMES, place=(self._directory_of[descriptor], "")))
        elif descriptor in self._file_of:
            self.calls.append(Call(Kind.FORCE, self._file_of[descriptor]))

    _note_fdatasync = _note_fsync

    def _note_rename(self, real: Any, old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        real(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        place, to = (self._directory_of[src_dir_fd], old), (self._directory_of[dst_dir_fd], new)
        self._names[to] = self._names.pop(place)
        self.calls.append(Call(Kind.RENAME, self._names[to], place=place, to=to))

    def _note_unlink(self, real: Any, path: Any, *, dir_fd: int | None = None) -> None:
        real(path, dir_fd=dir_fd)
        place = self._place(path, dir_fd)
        if place is not None:
            self.calls.append(Call(Kind.UNLINK, self._names.pop(place), place=place))

    def _note_mkdir(self, real: Any, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        real(path, mode, dir_fd=dir_fd)
        if dir_fd in self._directory_of:
            self.calls.append(Call(Kind.MKDIR, place=("", str(path))))

    def _note_close(self, real: Any, descriptor: int) -> None:
        self._file_of.pop(descriptor, None)
        self._directory_of.pop(descriptor, None)
        real(descriptor)


_RECORDED = ("open", "write", "ftruncate", "fsync", "fdatasync", "rename", "unlink", "mkdir", "close")


class Disk:
    """The content of the disk after the first `n` calls."""

    def __init__(self, calls: Sequence[Call], n: int) -> None:
        self.marks = [call.mark for call in calls[:n] if call.kind is Kind.MARK]
        self._contents: dict[int, list[bytes]] = {}
        """Of each file the content when it was last forced, and after each call since."""
        self._names: dict[Place, int] = {}
        self._unforced: list[tuple[Call, set[str]]] = []
        """Calls that changed names, with the directories that were not forced since."""
        for call in calls[:n]:
            self._take(call)

    def _take(self, call: Call) -> None:
        if call.kind is Kind.CREATE:
            self._contents[call.file] = [b""]
        if call.kind in (Kind.WRITE, Kind.TRUNCATE):
            self._contents[call.file].append(_changed(self._contents[call.file][-1], call))
        elif call.kind is Kind.FORCE:
            self._contents[call.file] = self._contents[call.file][-1:]
        elif call.kind is Kind.FORCE_NAMES:
            for _, directories in self._unforced:
                directories.discard(call.place[0])
            # In order: forcing a later change of names also forces the earlier ones.
            while self._unforced and not self._unforced[0][1]:
                _rename(self._names, self._unforced.pop(0)[0])
            for change, directories in self._unforced.copy():
                if not directories:
                    self._unforced.remove((change, directories))
                    _rename(self._names, change)
        elif call.kind is not Kind.MARK:
            places = {call.place[0], call.to[0]} if call.kind is Kind.RENAME else {call.place[0]}
            self._unforced.append((call, places))

    def after_kill(self) -> dict[Place, bytes]:
        """Everything that was written."""
        names = dict(self._names)
        for change, _ in self._unforced:
            _rename(names, change)
        return {place: self._contents[file][-1] if file >= 0 else b"" for place, file in names.items()}

    def after_power_cut(self, rng: random.Random) -> dict[Place, bytes]:
        """One of the states that the disk may be in."""
        names = dict(self._names)
        keeps = rng.choice((0.0, 0.5, 0.9, 1.0))
        for change, _ in self._unforced:
            if rng.random() < keeps:
                _rename(names, change)
        return {place: self._some_version(file, rng) if file >= 0 else b"" for place, file in names.items()}

    def _some_version(self, file: int, rng: random.Random) -> bytes:
        versions = self._contents[file]
        last = rng.choice((0, len(versions) - 1, rng.randrange(len(versions))))
        kind = rng.randrange(3)
        if last == 0 or kind == 0:
            return versions[last]
        if kind == 1:  # all but the end of the last call
            before, content = versions[last - 1], versions[last]
            return content[: rng.randint(len(before), len(content))] if len(content) > len(before) else content
        size = len(versions[rng.randint(0, last)])
        pages = bytearray(size)
        for begin in range(0, size, PAGE):
            page = versions[rng.randint(0, last)][begin : begin + PAGE]
            pages[begin : begin + len(page)] = page
        return bytes(pages[:size])


def write_state(state: Mapping[Place, bytes], directory: Path) -> None:
    """Make a directory of a state."""
    directory.mkdir()
    for folder in {folder for folder, _ in state if folder}:
        (directory / folder).mkdir()
    for (folder, name), content in state.items():
        if name and name != ".":
            (directory / folder / name).write_bytes(content)


def _changed(content: bytes, call: Call) -> bytes:
    if call.kind is Kind.TRUNCATE:
        return content[: call.offset].ljust(call.offset, b"\0")
    content = content.ljust(call.offset, b"\0")
    return content[: call.offset] + call.data + content[call.offset + len(call.data) :]


def _rename(names: dict[Place, int], call: Call) -> None:
    """Apply a change of names, unless its source is missing."""
    if call.kind is Kind.CREATE:
        names[call.place] = call.file
    elif call.kind is Kind.MKDIR:
        names[(call.place[1], "")] = -1
    elif names.get(call.place) == call.file:
        del names[call.place]
        if call.kind is Kind.RENAME:
            names[call.to] = call.file
