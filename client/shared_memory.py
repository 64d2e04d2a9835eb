"""Memory of a feeder that nodes of the same machine read: MEPs stay in it until they are acknowledged.

It is a memory file without a name (memfd), so the system frees it when feeder and nodes end, even after a crash.
"""

import contextlib
import fcntl
import mmap
import os
import threading
import weakref
from bisect import bisect_left
from queue import Empty, SimpleQueue

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.shared_frames import offset_in, ranges_in
from hltnode.protocol.transport.shared_memory import FRAME_ALIGNMENT, SEALS

MIB = 1 << 20
# A MEP of the default largest size of a node (builder.max_mep_bytes) fits.
DEFAULT_BYTES = 256 * MIB
# A MEP takes at most this part of the memory. The producer and the sender hold up to three MEPs that are acknowledged
# or not sent yet. At any places of these, one gap is large enough for another MEP.
LARGEST_PART = 8


class SharedMemoryError(ValueError):
    """The memory is not available, too small for a MEP, or closed."""


class SharedMemory:
    """Memory for MEPs that go to nodes of this machine. It is allocated at the first use.

    An array from `allocate` becomes free when nothing refers to it or a view of it.

    Args:
        nbytes: its size, rounded up to pages. All of it is allocated at once.
    """

    def __init__(self, nbytes: int = DEFAULT_BYTES) -> None:
        self.nbytes = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self._file: int | None = None
        self._memory: memoryview | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        # Offset and size of the free ranges, in order.
        self._free: list[tuple[int, int]] = [(0, self.nbytes)]
        # Ranges freed since. The last reference to an array may vanish in any thread, even while the lock is held. None
        # means closed.
        self._freed: SimpleQueue[tuple[int, int] | None] = SimpleQueue()

    def fileno(self) -> int:
        """Descriptor of the memory file. Raises SharedMemoryError."""
        with self._lock:
            self._open()
        assert self._file is not None
        return self._file

    def allocate(self, nbytes: int) -> NDArray[np.uint8]:
        """An array in this memory; blocks until there is room. Raises SharedMemoryError."""
        with self._lock:
            while (array := self._take(nbytes)) is None:
                self._put_back(self._freed.get())
        return array

    def try_allocate(self, nbytes: int) -> NDArray[np.uint8] | None:
        """An array in this memory, or None if there is no room now."""
        if not self._lock.acquire(blocking=False):
            # Another thread waits for room.
            return None
        try:
            with contextlib.suppress(Empty):
                while True:
                    self._put_back(self._freed.get_nowait())
            return self._take(nbytes)
        finally:
            self._lock.release()

    def offset_of(self, buffer: Buffer) -> int | None:
        """Offset of a buffer in this memory, None if it lies outside."""
        if self._memory is None:
            return None
        offset = offset_in(self._memory, buffer)
        return None if offset < 0 else offset

    def ranges_of(self, frames: list[Buffer], most: int) -> tuple[list[tuple[int, int]], int]:
        """The ranges (offset, size) of the first of these frames, and the number of these frames. Ends before the first
        frame outside this memory, or after `most` ranges."""
        return ([], 0) if self._memory is None else ranges_in(self._memory, frames, most)

    def close(self) -> None:
        """Close the memory: `allocate` raises, also in waiting threads. Existing arrays stay valid."""
        self._is_closed = True
        self._freed.put(None)
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._memory = None

    def _take(self, nbytes: int) -> NDArray[np.uint8] | None:
        size = -(-max(1, nbytes) // FRAME_ALIGNMENT) * FRAME_ALIGNMENT
        if size > self.nbytes // LARGEST_PART:
            raise SharedMemoryError(
                f"a MEP of {nbytes} bytes needs shared memory of {LARGEST_PART * size} bytes, "
                f"it has {self.nbytes}: feed fewer events per MEP, or raise --segment-mib"
            )
        memory = self._open()
        for i, (begin, free) in enumerate(self._free):
            if free >= size:
                if free == size:
                    del self._free[i]
                else:
                    self._free[i] = begin + size, free - size
                array: NDArray[np.uint8] = np.frombuffer(memory, np.uint8, nbytes, begin)
                weakref.finalize(array, self._freed.put, (begin, size)).atexit = False
                return array
        return None

    def _put_back(self, freed: tuple[int, int] | None) -> None:
        if freed is None:
            raise SharedMemoryError("the shared memory is closed")
        begin, size = freed
        i = bisect_left(self._free, freed)
        if i < len(self._free) and self._free[i][0] == begin + size:
            size += self._free.pop(i)[1]
        if i and sum(self._free[i - 1]) == begin:
            i -= 1
            before, more = self._free.pop(i)
            begin, size = before, size + more
        self._free.insert(i, (begin, size))

    def _open(self) -> memoryview:
        if self._is_closed:
            raise SharedMemoryError("the shared memory is closed")
        if self._memory is None:
            # The system would try to free memory, at the cost of all other programs.
            available = os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE
            if self.nbytes > available:
                raise SharedMemoryError(
                    f"{self.nbytes} bytes of shared memory requested: {available} are free on this machine"
                )
            try:
                file = os.memfd_create("hltnode-feeder", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            except OSError as error:
                raise SharedMemoryError(f"shared memory is not available: {error.strerror}") from error
            try:
                os.posix_fallocate(file, 0, self.nbytes)
                memory = mmap.mmap(file, self.nbytes, flags=mmap.MAP_SHARED)
                fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALS)
            except OSError as error:
                os.close(file)
                raise SharedMemoryError(f"{self.nbytes} bytes of shared memory: {error.strerror}") from error
            self._file, self._memory = file, memoryview(memory)
        return self._memory
