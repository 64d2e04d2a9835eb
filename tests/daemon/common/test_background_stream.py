"""A log or terminal that blocks or fails costs lines, and nothing else."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hltnode.daemon.common.background_stream import BackgroundStream


class Pipe:
    def __init__(self) -> None:
        self.reading, writing = os.pipe()
        self.file = os.fdopen(writing, "w")

    def fill(self) -> int:
        """Fill the pipe, so that the next call of a writer blocks; returns the number of bytes."""
        nbytes = 0
        os.set_blocking(self.file.fileno(), False)
        with suppress(BlockingIOError):
            while True:
                nbytes += os.write(self.file.fileno(), bytes(4096))
        os.set_blocking(self.file.fileno(), True)
        return nbytes

    def close_reader(self) -> None:
        os.close(self.reading)
        self.reading = -1


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    if made.reading >= 0:
        made.close_reader()
    made.file.close()


def test_lines_reach_the_descriptor_in_their_order(pipe: Pipe) -> None:
    stream = BackgroundStream(pipe.file)
    for n in range(100):
        stream.write(f"line {n}\n")
    assert stream.drain()
    assert os.read(pipe.reading, 1 << 16).decode().splitlines() == [f"line {n}" for n in range(100)]
    assert stream.lines_lost == 0


def test_without_a_reader_lines_are_lost_and_counted(pipe: Pipe) -> None:
    stream = BackgroundStream(pipe.file)
    pipe.close_reader()
    stream.write("one\n")
    stream.write("two\nthree without an end")
    assert stream.drain()
    assert stream.lines_lost == 3
    assert stream.fails


def test_a_full_disk_costs_the_lines_that_have_no_room() -> None:
    with Path("/dev/full").open("w") as full:
        stream = BackgroundStream(full)
        stream.write("one\n")
        assert stream.drain()
        assert stream.lines_lost == 1


def test_a_reader_that_stalls_blocks_no_writer_and_bounds_the_queue(pipe: Pipe) -> None:
    filled = pipe.fill()
    stream = BackgroundStream(pipe.file, most_bytes=1000)
    line = 99 * "x" + "\n"
    n = 3000
    for _ in range(n):
        stream.write(line)
    assert not stream.drain(0.0)
    lost = stream.lines_lost
    assert stream.fails
    # One call is on its way, and the queue holds ten lines.
    assert n - lost <= 20
    read = 0
    while not stream.drain(0.01):
        read += len(os.read(pipe.reading, 1 << 16))
    os.set_blocking(pipe.reading, False)
    with suppress(BlockingIOError):
        read += len(os.read(pipe.reading, 1 << 20))
    assert read == filled + (n - lost) * len(line)
    assert stream.lines_lost == lost
    assert not stream.fails, "a line was written again"


def test_a_line_that_exactly_fills_the_queue_is_kept(pipe: Pipe) -> None:
    fitting, too_long = BackgroundStream(pipe.file, most_bytes=4), BackgroundStream(pipe.file, most_bytes=3)
    for stream in (fitting, too_long):
        stream.write("abc\n")
        assert stream.drain()
    assert (fitting.lines_lost, too_long.lines_lost) == (0, 1)
    assert os.read(pipe.reading, 100) == b"abc\n"


def test_a_descriptor_that_is_set_to_not_block_loses_nothing(pipe: Pipe) -> None:
    os.set_blocking(pipe.file.fileno(), False)
    stream = BackgroundStream(pipe.file)
    text = 200_000 * "y" + "\n"
    stream.write(text)
    read = 0
    while read < len(text):
        read += len(os.read(pipe.reading, 1 << 16))
    assert stream.drain()
    assert stream.lines_lost == 0


def test_characters_that_have_no_encoding_do_not_stop_a_writer(pipe: Pipe) -> None:
    stream = BackgroundStream(pipe.file)
    stream.write("bad \udcff\n")
    assert stream.drain()
    assert os.read(pipe.reading, 100) == b"bad \\udcff\n"


def test_a_stream_in_memory_has_its_lines_at_once_and_counts_those_after_its_end() -> None:
    memory = io.StringIO()
    stream = BackgroundStream(memory)
    stream.write("one\n")
    assert memory.getvalue() == "one\n"
    assert not stream.fails
    assert not stream.isatty()
    memory.close()
    stream.write("two\n")
    assert stream.lines_lost == 1
    assert stream.fails
    assert not stream.isatty()


def test_without_a_standard_error_all_lines_are_lost() -> None:
    stream = BackgroundStream(None)
    stream.write("one\n")
    assert (stream.lines_lost, stream.isatty(), stream.encoding) == (1, False, "utf-8")
    with pytest.raises(OSError, match="fileno"):
        stream.fileno()
