"""A segment: memory of a feeder that this process reads. It cannot shrink and has no holes, so that reading is safe."""

import fcntl
import mmap
import os
import stat

from hltnode.protocol.transport.shared_memory import SEALS, MemoryRefusal, is_in


class SegmentRefusedError(ValueError):
    """What was handed over is not taken; `reason` goes to the feeder."""

    def __init__(self, reason: MemoryRefusal, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Segment:
    """Memory behind a descriptor, mapped read-only. The descriptor stays the caller's.

    The seals are what makes it safe: who reads mapped memory of a file that shrinks meanwhile is killed (SIGBUS), and
    who reads a hole pays for the page. Only memory files have seals, so that no other kind of file passes. The content
    may change at any moment.

    Args:
        nbytes: the size that the feeder has announced.
        most: the largest size that is taken.

    Raises:
        SegmentRefusedError: it is no such memory.
    """

    def __init__(self, file: int, nbytes: int, most: int) -> None:
        if not 0 < nbytes <= most:
            raise SegmentRefusedError(MemoryRefusal.TOO_LARGE, f"{nbytes} bytes, 1 to {most} are taken")
        status = os.fstat(file)
        try:
            seals = fcntl.fcntl(file, fcntl.F_GET_SEALS)
        except OSError as error:
            raise SegmentRefusedError(MemoryRefusal.NOT_SEALED, "a memory file (memfd) with seals expected") from error
        if seals & SEALS != SEALS or not stat.S_ISREG(status.st_mode):
            raise SegmentRefusedError(MemoryRefusal.NOT_SEALED, f"seals 0x{SEALS:x} expected, 0x{seals:x} found")
        if status.st_size != nbytes:
            raise SegmentRefusedError(MemoryRefusal.BAD_SIZE, f"{nbytes} bytes announced, {status.st_size} found")
        if status.st_blocks * 512 < nbytes:
            raise SegmentRefusedError(
                MemoryRefusal.NOT_ALLOCATED, f"{nbytes} bytes, of which {status.st_blocks * 512} are allocated"
            )
        self.nbytes = nbytes
        try:
            self._map = mmap.mmap(file, nbytes, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
        except (OSError, ValueError) as error:
            raise SegmentRefusedError(MemoryRefusal.NOT_SEALED, f"it cannot be mapped: {error}") from error
        self._view = memoryview(self._map)

    def range(self, offset: int, size: int) -> memoryview:
        """A part of it; every view of it is to be released before `close`. Raises SegmentRefusedError."""
        if not is_in(self.nbytes, offset, size):
            raise SegmentRefusedError(
                MemoryRefusal.OUTSIDE, f"{size} bytes at {offset} are no range of a segment of {self.nbytes} bytes"
            )
        return self._view[offset : offset + size]

    def close(self) -> None:
        """Unmap."""
        self._view.release()
        self._map.close()
