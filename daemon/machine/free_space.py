"""Free space and file system of the output directory, read in a thread because a network file system may hang."""

import os
import threading
from pathlib import Path

from hltnode.daemon.machine.filesystem_identity import filesystem_identity

# Files grow by a few gigabytes per second at most, so this period is short enough for an alert.
PERIOD_SECONDS = 5.0


class FreeSpace:
    """Reads periodically from `start` to `stop`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hltnode-free-space", daemon=True)
        self.nbytes: int | None = None
        """Free bytes; None before the first reading and while it fails."""
        self.filesystem = str(directory)
        """Identity of the file system; before the first reading, the directory."""

    def start(self) -> None:
        """Start the thread, which reads immediately."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading; does not wait for a hanging file system."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(0.1)

    def _run(self) -> None:
        while True:
            try:
                self.filesystem = filesystem_identity(self._directory)
                status = os.statvfs(self._directory)
                self.nbytes = status.f_bavail * status.f_frsize
            except OSError:
                # The writer reports errors of the directory.
                self.nbytes = None
            if self._stopping.wait(PERIOD_SECONDS):
                return
