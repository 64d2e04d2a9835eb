"""The lock of an output directory. The kernel releases it when the process ends, for any reason."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from hltnode.daemon.storage.output_directory import OutputDirectory

LOCK_NAME = "hltnode.lock"


class DirectoryLockedError(OSError):
    """Another process owns the directory; nothing in it was changed."""


def check_directory(directory: Path) -> None:
    """Raise ValueError if the directory is not there and cannot be created."""
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is a file, expected a folder")
    if not directory.parent.is_dir():
        raise ValueError(f"there is no folder {directory.parent}")


class DirectoryLock:
    """Ownership of a directory and of every file in it, from construction until `release`.

    The lock file holds the process id and is never deleted; otherwise two processes could lock two files of the same
    name. A `flock` lock belongs to the open file: it survives a rename of the directory and ends with the process.

    Raises:
        DirectoryLockedError: another process owns the directory; the message names the process.
        OSError: the directory cannot be created (its parent must exist) or cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        # Opening the lock does not follow a later move of the directory, so it happens relative to a descriptor.
        self._directory = OutputDirectory(directory)
        try:
            self._descriptor = self._directory.open(LOCK_NAME, os.O_RDWR | os.O_CREAT)
        except OSError:
            self._directory.close()
            raise
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            self.release()
            raise DirectoryLockedError(f"{directory}: another node writes here, pid {owner or 'unknown'}") from None
        except OSError:
            self.release()
            raise
        os.ftruncate(self._descriptor, 0)
        # On a full disk the lock holds without the number.
        with suppress(OSError):
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def replaced(self) -> Path | None:
        """The path of the lock if it was removed or replaced: another node could lock the directory too."""
        is_other = self._directory.has_other_file(LOCK_NAME, self._descriptor)
        return self._directory.path / LOCK_NAME if is_other else None

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)
        self._directory.close()
