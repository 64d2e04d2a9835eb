"""Memory of this process: its resident size, and the return of free heap pages to the system."""

import ctypes
import os
import resource
import sys


class ResidentMemory:
    """Reads the resident memory, even when the process has no free descriptors."""

    def __init__(self) -> None:
        self._file = os.open("/proc/self/statm", os.O_RDONLY) if sys.platform.startswith("linux") else None

    def nbytes(self) -> int | None:
        """Resident bytes; None if the system does not report them."""
        if self._file is None:
            return None
        return int(os.pread(self._file, 256, 0).split()[1]) * resource.getpagesize()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def give_back_free_memory() -> None:
    """Return the free pages of the heap to the system, if the C library can do that.

    `malloc_tuning` keeps freed memory in the heap. That is right for a steady flow of frames, and wrong after a peer
    has filled the heap.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
