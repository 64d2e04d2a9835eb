"""Record of data that a node forced to the disk, beside its output: a simulated power cut removes only other data.

The record is written before the fsync call returns, so it contains everything that the node considers safe. Every
forced name gets a second link in `links`, from which a cut restores a file that was renamed or removed later.
"""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hltnode.daemon.storage import recovery

FORCED_LOG = "forced.log"
LINKS = "links"
# Identifies the boot of the machine, as the kernel does in /proc.
BOOT = "boot"
_FD = "/proc/self/fd/{}"


class ForcedRecorder:
    """Appends each fsync of files and directories below `root/output` to `forced.log` below `root`.

    The output may have been moved to another name below `root`.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._links = root / LINKS
        self._links.mkdir(exist_ok=True)
        self._log = os.open(root / FORCED_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._linked: set[int] = {int(path.name) for path in self._links.iterdir()}

    def wrap(self, force: Callable[[Any], None]) -> Callable[[Any], None]:
        """`os.fsync` or `os.fdatasync`, recorded."""

        def recorded(file: Any) -> None:
            descriptor = file if isinstance(file, int) else file.fileno()
            path = Path(os.readlink(_FD.format(descriptor)))
            if not path.is_relative_to(self._root):
                force(file)
            elif path.is_dir():
                names = {entry.name: entry.inode() for entry in os.scandir(path) if entry.is_file()}
                force(file)
                self._keep(path, names)
                below_output = Path(*path.relative_to(self._root).parts[1:])
                self._write({"directory": str(below_output), "names": names})
            else:
                status = os.fstat(descriptor)
                force(file)
                self._write({"file": status.st_ino, "size": status.st_size})

        return recorded

    def _keep(self, directory: Path, names: dict[str, int]) -> None:
        """Link new files. A file that another thread has renamed meanwhile is found by its inode."""
        new = {inode: name for name, inode in names.items() if inode not in self._linked}
        while new:
            inode, name = new.popitem()
            try:
                os.link(directory / name, self._links / str(inode))
                self._linked.add(inode)
            except FileNotFoundError:
                renamed = (entry.name for entry in os.scandir(directory) if entry.inode() == inode)
                if (found := next(renamed, None)) is not None:
                    new[inode] = found

    def _write(self, record: dict[str, Any]) -> None:
        line = json.dumps(record).encode()
        # On a full disk the record may be incomplete; then the node must not consider the data safe.
        if os.write(self._log, b"\n" + line + b"\n") != len(line) + 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), FORCED_LOG)


def install(root: Path) -> None:
    """Record the fsync calls of this process from now on; the file BOOT indicates a power cut."""
    recorder = ForcedRecorder(root)
    recovery._BOOT_ID = root / BOOT
    os.fsync = recorder.wrap(os.fsync)  # type: ignore[assignment]
    os.fdatasync = recorder.wrap(os.fdatasync)  # type: ignore[assignment]
