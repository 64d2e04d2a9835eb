"""The output directory, by a descriptor that is kept open.

Every file is opened, renamed and forced relative to that descriptor: no operation but the opening of a file needs
another one, and a directory that is moved away while the node writes takes its files with it.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

from hltnode.daemon.common.vocabulary import WriteErrorKind

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class OutputError(OSError):
    """The disk refused; nothing that was handed over is lost, and the call may be repeated."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror, str(path))
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        self.kind = WriteErrorKind.DISK_FULL if full else WriteErrorKind.IO


class OutputDirectory:
    """A directory for files; all methods raise OutputError.

    Args:
        path: created if its parent exists.
        parent: the directory that it is in, if that is one of ours too.
    """

    def __init__(self, path: Path, parent: "OutputDirectory | None" = None) -> None:
        self.path = path
        self._subdirectories: dict[str, OutputDirectory] = {}
        self._unforced = True
        self._descriptor = -1
        name, dir_fd = (path, None) if parent is None else (Path(path.name), parent._descriptor)
        try:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=dir_fd)
            self._descriptor = os.open(name, _FLAGS, dir_fd=dir_fd)
        except FileNotFoundError as error:
            text = "output.directory: its parent does not exist"
            raise OutputError(path, FileNotFoundError(error.errno, text)) from error
        except OSError as error:
            raise OutputError(path, OSError(error.errno, f"output.directory: {error.strerror}")) from error

    def subdirectory(self, name: str) -> "OutputDirectory":
        """A directory in this one, created at the first call."""
        if name not in self._subdirectories:
            self._subdirectories[name] = OutputDirectory(self.path / name, self)
            self._unforced = True
        return self._subdirectories[name]

    def open(self, name: str, flags: int) -> int:
        """Descriptor of a file; the caller closes it."""
        try:
            descriptor = os.open(name, flags | os.O_CLOEXEC, 0o640, dir_fd=self._descriptor)
        except OSError as error:
            raise OutputError(self.path / name, error) from error
        if flags & os.O_CREAT:
            self._unforced = True
        return descriptor

    def rename(self, old: str, new: str, into: "OutputDirectory | None" = None) -> None:
        """Rename a file, or move it into another directory of the same file system."""
        into = into or self
        try:
            os.rename(old, new, src_dir_fd=self._descriptor, dst_dir_fd=into._descriptor)
        except OSError as error:
            raise OutputError(self.path / old, error) from error
        self._unforced = into._unforced = True

    def unlink(self, name: str) -> None:
        """Remove a file."""
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except OSError as error:
            raise OutputError(self.path / name, error) from error
        self._unforced = True

    def size(self, name: str) -> int | None:
        """Bytes of a file, None if there is none of this name."""
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OutputError(self.path / name, error) from error

    def names(self) -> list[str]:
        """Names of the files, sorted."""
        try:
            return sorted(os.listdir(self._descriptor))
        except OSError as error:
            raise OutputError(self.path, error) from error

    def sync(self) -> None:
        """Force the names to the disk, if one was changed since the last call."""
        if not self._unforced:
            return
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise OutputError(self.path, error) from error
        self._unforced = False

    def moved(self) -> str | None:
        """Why the files do not appear at the configured path, None if they do."""
        try:
            there = os.stat(self.path)
            here = os.fstat(self._descriptor)
        except OSError as error:
            return f"{self.path}: {error.strerror}"
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            return f"{self.path} is another directory than the one that the node has opened and writes to"
        return None

    def close(self) -> None:
        """Close the descriptors."""
        for inner in self._subdirectories.values():
            inner.close()
        self._subdirectories.clear()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
