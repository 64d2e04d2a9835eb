"""Heap settings of the C library for a process that allocates blocks of megabytes again and again."""

import ctypes
import sys

# Constants of malloc.h.
_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3

# Blocks below this size (the largest that glibc allows) come from the heap.
_MMAP_THRESHOLD = 32 << 20
# Free memory that the heap keeps before it returns pages to the system, and its growth step.
_TRIM_THRESHOLD = 512 << 20
_TOP_PAD = 64 << 20


def keep_heap() -> bool:
    """Keep freed memory in the heap; False if the C library has no mallopt.

    ZeroMQ allocates each received frame. By default glibc maps each large block and unmaps it when it is freed, so
    every frame costs page faults: with frames of 256 KiB the receiving thread of ZeroMQ took
    twice as long (docs/performance/node-and-readout.md). The arrays of a search for cuts cost as much: on 20,000 events
    the page faults took as long as the search itself.
    """
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return False
    settings = {_M_MMAP_THRESHOLD: _MMAP_THRESHOLD, _M_TRIM_THRESHOLD: _TRIM_THRESHOLD, _M_TOP_PAD: _TOP_PAD}
    return all(library.mallopt(parameter, value) == 1 for parameter, value in settings.items())
