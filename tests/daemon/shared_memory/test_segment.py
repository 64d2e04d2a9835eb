"""Accepted memory files of feeders: a file that could crash the reading node is refused."""

import fcntl
import mmap
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hltnode.daemon.shared_memory.segment import Segment, SegmentRefusedError
from hltnode.protocol.transport.shared_memory import (
    SEAL_FUTURE_WRITE,
    SEAL_GROW,
    SEAL_SEAL,
    SEAL_SHRINK,
    SEALS,
    MemoryRefusal,
)
from tests.daemon.shared_memory.memory_files import memory_file

PAGE = mmap.PAGESIZE
MOST = 16 * PAGE


def reason_of(file: int, nbytes: int = 4 * PAGE) -> MemoryRefusal:
    with pytest.raises(SegmentRefusedError) as refused:
        Segment(file, nbytes, MOST)
    return refused.value.reason


def test_sealed_memory_is_read_while_its_owner_writes() -> None:
    with memory_file(4 * PAGE, seals=SEALS & ~SEAL_FUTURE_WRITE & ~SEAL_SEAL) as file:
        writable = mmap.mmap(file, 4 * PAGE)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALS)
        segment = Segment(file, 4 * PAGE, MOST)
        writable[64:68] = b"abcd"
        with segment.range(64, 4) as part:
            assert bytes(part) == b"abcd"
            writable[64:68] = b"efgh"
            assert bytes(part) == b"efgh"
        segment.close()


def test_the_largest_size_is_accepted_and_a_page_more_is_refused() -> None:
    with memory_file(MOST) as file:
        Segment(file, MOST, MOST).close()
    with memory_file(MOST + PAGE) as file:
        assert reason_of(file, MOST + PAGE) is MemoryRefusal.TOO_LARGE


def _pipe(_: Path) -> int:
    reading, writing = os.pipe()
    os.close(writing)
    return reading


def _fifo(directory: Path) -> int:
    os.mkfifo(directory / "fifo")
    return os.open(directory / "fifo", os.O_RDONLY | os.O_NONBLOCK)


def _file(directory: Path) -> int:
    (directory / "file").write_bytes(bytes(4 * PAGE))
    return os.open(directory / "file", os.O_RDWR)


def _socket(_: Path) -> int:
    return socket.socket(socket.AF_UNIX).detach()


OTHERS: dict[str, Callable[[Path], int]] = {
    "pipe": _pipe,
    "fifo": _fifo,
    "file": _file,
    "socket": _socket,
    "directory": lambda directory: os.open(directory, os.O_RDONLY),
    "path": lambda directory: os.open(directory, os.O_PATH),
    "device": lambda _: os.open("/dev/zero", os.O_RDWR),
    "event": lambda _: os.eventfd(0),
    "file in /dev/shm": lambda _: os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_descriptors_other_than_memory_files_are_refused(kind: str, tmp_path: Path) -> None:
    file = OTHERS[kind](tmp_path)
    try:
        assert reason_of(file) is MemoryRefusal.NOT_SEALED
    finally:
        os.close(file)


@pytest.mark.parametrize("missing", [SEAL_SHRINK, SEAL_GROW, SEAL_FUTURE_WRITE, SEAL_SEAL, SEALS])
def test_memory_that_lacks_a_seal_is_refused_because_it_could_shrink_while_it_is_read(missing: int) -> None:
    with memory_file(4 * PAGE, seals=SEALS & ~missing) as file:
        assert reason_of(file) is MemoryRefusal.NOT_SEALED


@pytest.mark.parametrize("nbytes", [0, MOST + 1, 1 << 62])
def test_memory_above_the_limit_is_refused_before_anything_else(nbytes: int) -> None:
    with memory_file(4 * PAGE) as file:
        assert reason_of(file, nbytes) is MemoryRefusal.TOO_LARGE


@pytest.mark.parametrize("nbytes", [1, 4 * PAGE - 1, 4 * PAGE + 1, 8 * PAGE])
def test_memory_of_another_size_than_announced_is_refused(nbytes: int) -> None:
    with memory_file(4 * PAGE) as file:
        assert reason_of(file, nbytes) is MemoryRefusal.BAD_SIZE


def test_memory_with_holes_is_refused_because_reading_would_fill_them() -> None:
    with memory_file(4 * PAGE, allocate=False, content=b"one page") as file:
        assert reason_of(file) is MemoryRefusal.NOT_ALLOCATED


@pytest.mark.parametrize(
    ("offset", "size"),
    [(0, 0), (0, 4 * PAGE + 1), (64, 4 * PAGE), (4 * PAGE, 1), (4 * PAGE, 0), (1 << 63, 64), (64, (1 << 64) - 1)]
    + [(offset, 64) for offset in (1, 8, 63, 65)],
)
def test_a_range_outside_or_between_the_places_of_frames_is_refused(offset: int, size: int) -> None:
    with memory_file(4 * PAGE) as file:
        segment = Segment(file, 4 * PAGE, MOST)
        with pytest.raises(SegmentRefusedError) as refused:
            segment.range(offset, size)
        assert refused.value.reason is MemoryRefusal.OUTSIDE
        with segment.range(0, 4 * PAGE) as whole:
            assert len(whole) == 4 * PAGE
        segment.close()


def test_a_refused_file_leaves_no_descriptor_behind() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with memory_file(4 * PAGE, seals=0) as file:
        for _ in range(3):
            reason_of(file)
        assert len(os.listdir("/proc/self/fd")) == before + 1
