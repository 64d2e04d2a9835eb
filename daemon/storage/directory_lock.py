"""One owner of an output directory: a lock that the kernel gives up when its process ends, however it ends."""

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
    """Owner of a directory and of every file in it, from the moment it is made until `release`.

    The lock is on a file with the process id in it, which is never deleted: two processes must not be able to lock two
    files of one name. A lock of `flock` belongs to the open file, so it stays while the directory is renamed, and does
    not outlive the process.

    Raises:
        DirectoryLockedError: another process has it; the message names the process.
        OSError: the directory does not exist and cannot be created (its parent has to exist), or cannot be written.
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
        """Let another process have the directory."""
        os.close(self._descriptor)
