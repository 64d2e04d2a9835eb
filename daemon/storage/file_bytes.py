"""Reading, copying and checking bytes of open files; all functions raise OSError."""

import errno
import os
import struct
from collections.abc import Iterator

from crc32c import crc32c

from hltnode.protocol.raw_data.mdf import HEADER_SIZE

BLOCK_BYTES = 4 * 1024 * 1024


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`, with repeated calls if necessary."""
    rest = memoryview(data)
    while rest:
        written = os.write(descriptor, rest)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rest = rest[written:]


def blocks(descriptor: int, begin: int, end: int) -> Iterator[bytes]:
    """Yield the bytes from `begin` to `end` or to the end of the file, in blocks."""
    while begin < end and (block := os.pread(descriptor, min(BLOCK_BYTES, end - begin), begin)):
        yield block
        begin += len(block)


def copy_bytes(source: int, begin: int, end: int, target: int) -> int:
    """Append bytes of one file to another; returns their CRC32C."""
    crc = 0
    for block in blocks(source, begin, end):
        crc = crc32c(block, crc)
        write_all(target, block)
    return crc


def checksum(descriptor: int, begin: int, end: int) -> int:
    """CRC32C of the bytes from `begin` to `end`."""
    crc = 0
    for block in blocks(descriptor, begin, end):
        crc = crc32c(block, crc)
    return crc


def count_records(descriptor: int, begin: int, end: int) -> int:
    """Number of complete, consecutive MDF records from `begin` to the first damaged one."""
    count = 0
    while begin + HEADER_SIZE <= end:
        first, second, third = struct.unpack("<3I", os.pread(descriptor, 12, begin))
        if not first == second == third or first < HEADER_SIZE or begin + first > end:
            break
        begin += first
        count += 1
    return count
