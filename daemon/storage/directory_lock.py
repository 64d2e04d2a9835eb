"""The lock of an output directory. The kernel releases it when the process ends, for any reason."""

import fcntl
import os
from pathlib import Path

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
        directory.mkdir(exist_ok=True)
        self._descriptor = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise DirectoryLockedError(f"{directory}: another node writes here, pid {owner or 'unknown'}") from None
        except OSError:
            os.close(self._descriptor)
            raise
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)
