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
# Permissions of new files and directories, whatever the umask: the group may read.
FILE_MODE = 0o640
DIRECTORY_MODE = 0o755


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
            is_new = False
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=dir_fd)
                is_new = True
            self._descriptor = os.open(name, _FLAGS, dir_fd=dir_fd)
            if is_new:
                os.fchmod(self._descriptor, DIRECTORY_MODE)
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
        """Descriptor of a file, not of the target of a link; the caller closes it."""
        is_new = bool(flags & os.O_CREAT) and self.size(name) is None
        try:
            # A link would let another user choose a file that the node overwrites.
            descriptor = os.open(name, flags | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE, dir_fd=self._descriptor)
            if is_new:
                os.fchmod(descriptor, FILE_MODE)
        except OSError as error:
            raise OutputError(self.path / name, error) from error
        if flags & os.O_CREAT:
            self._unforced = True
        return descriptor

    def has_other_file(self, name: str, descriptor: int) -> bool:
        """True if a name no longer belongs to the open file: it was removed or replaced."""
        try:
            there = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:
            return True
        here = os.fstat(descriptor)
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

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
