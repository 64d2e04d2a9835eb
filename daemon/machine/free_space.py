"""How much space is left where the event files are; read in a thread, because a network file system may hang."""

import os
import threading
from pathlib import Path

# Files grow by some gigabytes per second at most: often enough for an alert, and cheap.
PERIOD_SECONDS = 5.0


class FreeSpace:
    """Reads from `start` to `stop`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hltnode-free-space", daemon=True)
        self.nbytes: int | None = None
        """Bytes that the node may still write; None before the first reading and if they cannot be read."""

    def start(self) -> None:
        """Read for the first time."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more; does not wait for a file system that hangs."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(0.1)

    def _run(self) -> None:
        while True:
            try:
                status = os.statvfs(self._directory)
                self.nbytes = status.f_bavail * status.f_frsize
            except OSError:
                # The writer reports what is wrong with the directory.
                self.nbytes = None
            if self._stopping.wait(PERIOD_SECONDS):
                return
