"""The output directory, accessed through one open descriptor.

Files are opened, renamed and forced relative to that descriptor. So only opening a file needs another descriptor, and
the files stay together if the directory is moved while the node writes.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

from hltnode.daemon.common.vocabulary import WriteErrorKind

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class OutputError(OSError):
    """An operation on the disk failed. The data are kept, and the call may be repeated."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror, str(path))
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        self.kind = WriteErrorKind.DISK_FULL if full else WriteErrorKind.IO


class OutputDirectory:
    """A directory for files; all methods raise OutputError.

    Args:
        path: created if its parent exists.
        parent: the OutputDirectory that contains it, if any.
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
        """A subdirectory, created at the first call."""
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
        """Size of a file in bytes; None if it does not exist."""
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
        """Force the directory entries to the disk, if one changed since the last call."""
        if not self._unforced:
            return
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise OutputError(self.path, error) from error
        self._unforced = False

    def moved(self) -> str | None:
        """Why the files do not appear at the configured path; None if they do."""
        try:
            there = os.stat(self.path)
            here = os.fstat(self._descriptor)
        except OSError as error:
            return f"{self.path}: {error.strerror}"
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            return f"{self.path} is no longer the directory that the node opened and writes to"
        return None

    def close(self) -> None:
        """Close the descriptors."""
        for inner in self._subdirectories.values():
            inner.close()
        self._subdirectories.clear()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
