"""Memory of this process: how much is resident, and giving back what the heap keeps free."""

import ctypes
import os
import resource
import sys


class ResidentMemory:
    """Reads the resident memory, also when no file can be opened any more."""

    def __init__(self) -> None:
        self._file = os.open("/proc/self/statm", os.O_RDONLY) if sys.platform.startswith("linux") else None

    def nbytes(self) -> int | None:
        """Bytes that are resident now; None where the system does not say it."""
        if self._file is None:
            return None
        return int(os.pread(self._file, 256, 0).split()[1]) * resource.getpagesize()

    def close(self) -> None:
        """Read no more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def give_back_free_memory() -> None:
    """Return the free pages of the heap to the system, where the C library can do that.

    `malloc_tuning` keeps freed memory in the heap, which is right for frames that follow each other, and wrong for what
    a peer has filled it with.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
