"""Memory files as a feeder makes them, and with something wrong."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hltnode.protocol.transport.shared_memory import SEALS


@contextmanager
def memory_file(nbytes: int, *, seals: int = SEALS, content: bytes = b"", allocate: bool = True) -> Iterator[int]:
    """Descriptor of a memory file that starts with these bytes."""
    file = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        if allocate:
            os.posix_fallocate(file, 0, nbytes)
        else:
            os.ftruncate(file, nbytes)
        os.pwrite(file, content, 0)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
        yield file
    finally:
        os.close(file)
