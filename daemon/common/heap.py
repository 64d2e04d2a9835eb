"""The C library's heap: how much of it is in use, and giving back what is free."""

import ctypes
import sys


class _Mallinfo(ctypes.Structure):
    """struct mallinfo2 of malloc.h."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


def _library() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform.startswith("linux") else None


_LIBRARY = _library()
_HAS_MALLINFO = hasattr(_LIBRARY, "mallinfo2")
if _LIBRARY is not None and _HAS_MALLINFO:
    _LIBRARY.mallinfo2.restype = _Mallinfo


def heap_in_use() -> int | None:
    """Bytes that are allocated, of all threads and of blocks with a mapping of their own; None if not known."""
    if _LIBRARY is None or not _HAS_MALLINFO:
        return None
    info = _LIBRARY.mallinfo2()
    return int(info.uordblks) + int(info.hblkhd)


def give_back_free_memory() -> None:
    """Return the free pages of the heap to the system, where the C library can do that.

    `malloc_tuning` keeps freed memory in the heap, which is right for frames that follow each other, and wrong for what
    a peer has filled it with.
    """
    if _LIBRARY is not None and hasattr(_LIBRARY, "malloc_trim"):
        _LIBRARY.malloc_trim(0)
