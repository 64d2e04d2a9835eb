"""A segment: memory of a feeder, mapped by this process. It cannot shrink and has no holes, so reading is safe."""

import fcntl
import mmap
import os
import stat

from hltnode.protocol.transport.shared_memory import SEALS, MemoryRefusal, is_in


class SegmentRefusedError(ValueError):
    """A segment or message is refused; `reason` is sent to the feeder."""

    def __init__(self, reason: MemoryRefusal, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Segment:
    """The memory of a descriptor, mapped read-only. The caller keeps the descriptor.

    Seals make this safe: a process that reads mapped memory of a shrinking file is killed (SIGBUS), and reading a hole
    allocates a page. Only memory files have seals, so no other kind of file passes. The content may change at any time.

    Args:
        nbytes: size announced by the feeder.
        most: largest accepted size.

    Raises:
        SegmentRefusedError: the memory has the wrong kind, seals or size.
    """

    def __init__(self, file: int, nbytes: int, most: int) -> None:
        if not 0 < nbytes <= most:
            raise SegmentRefusedError(MemoryRefusal.TOO_LARGE, f"{nbytes} bytes announced, expected 1 to {most}")
        status = os.fstat(file)
        try:
            seals = fcntl.fcntl(file, fcntl.F_GET_SEALS)
        except OSError as error:
            raise SegmentRefusedError(MemoryRefusal.NOT_SEALED, "expected a memory file (memfd) with seals") from error
        if seals & SEALS != SEALS or not stat.S_ISREG(status.st_mode):
            raise SegmentRefusedError(MemoryRefusal.NOT_SEALED, f"expected seals 0x{SEALS:x}, found 0x{seals:x}")
        if status.st_size != nbytes:
            raise SegmentRefusedError(MemoryRefusal.BAD_SIZE, f"{nbytes} bytes announced, {status.st_size} found")
        if status.st_blocks * 512 < nbytes:
            raise SegmentRefusedError(
                MemoryRefusal.NOT_ALLOCATED, f"{nbytes} bytes announced, only {status.st_blocks * 512} allocated"
            )
        self.nbytes = nbytes
        try:
            self._map = mmap.mmap(file, nbytes, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
        except (OSError, ValueError) as error:
            raise SegmentRefusedError(MemoryRefusal.NOT_SEALED, f"the memory cannot be mapped: {error}") from error
        self._view = memoryview(self._map)

    def range(self, offset: int, size: int) -> memoryview:
        """A view of a range; the caller releases it before `close`. Raises SegmentRefusedError."""
        if not is_in(self.nbytes, offset, size):
            raise SegmentRefusedError(
                MemoryRefusal.OUTSIDE,
                f"the range of {size} bytes at {offset} is outside the segment of {self.nbytes} bytes",
            )
        return self._view[offset : offset + size]

    def close(self) -> None:
        """Unmap the segment."""
        self._view.release()
        self._map.close()
