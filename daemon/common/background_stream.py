"""A text stream whose lines are written by a thread, so that a log or a terminal that blocks or fails stops nothing.

A terminal that is closed, a full disk and a reader that stalls are ordinary. They cost lines, which are counted, and
nothing else.
"""

import atexit
import errno
import io
import os
import select
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import TextIO

# Queued text that is kept for a slow reader: some ten thousand lines.
MOST_BYTES = 4 << 20
# Text of one call of the operating system; the bytes of a failed call are lost together.
CALL_BYTES = 64 << 10
# Longest wait for queued lines at the end of the process.
DRAIN_SECONDS = 1.0
# A descriptor that another process set to non-blocking is tried again after this time.
RETRY_MS = 100


class BackgroundStream:
    """Takes lines at once and writes them to a file descriptor in a thread; never raises OSError and never blocks.

    Any thread may write. A stream without a descriptor lies in memory: it cannot block and is written at once.

    Args:
        stream: where the lines go; only its descriptor is used, if it has one. None, as Python has for a closed
            standard error: all lines are lost.
        most_bytes: bound of the queue; lines beyond it are lost.
    """

    def __init__(self, stream: TextIO | None, *, most_bytes: int = MOST_BYTES) -> None:
        self._stream = stream
        self._descriptor = _descriptor_of(stream)
        self._most_bytes = most_bytes
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._is_writing = False
        self._lost = 0
        self._fails = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        _STREAMS.add(self)

    @property
    def encoding(self) -> str:
        """Consoles choose their characters by it."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def lines_lost(self) -> int:
        """Lines that were not written since the start."""
        return self._lost

    @property
    def fails(self) -> bool:
        """True from a lost line until a line is written again."""
        return self._fails

    def isatty(self) -> bool:
        """Whether the lines go to a terminal."""
        try:
            return self._stream is not None and self._stream.isatty()
        except ValueError:
            return False

    def fileno(self) -> int:
        """The descriptor, for the size of the terminal. Raises OSError without one."""
        if self._descriptor is None:
            raise io.UnsupportedOperation("fileno")
        return self._descriptor

    def flush(self) -> None:
        """Do nothing: a flush would wait for the reader (`drain` waits for a limited time)."""

    def write(self, text: str) -> int:
        """Queue text. It is lost if the queue is full."""
        if self._descriptor is None:
            self._write_in_memory(text)
            return len(text)
        content = text.encode("utf-8", "backslashreplace")
        with self._changed:
            if self._queued_bytes + len(content) > self._most_bytes:
                self._lost += _lines(content)
                self._fails = True
            else:
                self._queue.append(content)
                self._queued_bytes += len(content)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="hltnode-log", daemon=True)
                    self._thread.start()
                self._changed.notify_all()
        return len(text)

    def drain(self, seconds: float = DRAIN_SECONDS, clock: Callable[[], float] = time.monotonic) -> bool:
        """Wait until all queued text is written or lost. False if it takes longer."""
        until = clock() + seconds
        with self._changed:
            while self._queue or self._is_writing:
                left = until - clock()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def _write_in_memory(self, text: str) -> None:
        try:
            if self._stream is None:
                raise BrokenPipeError
            self._stream.write(text)
            self._stream.flush()
            self._fails = False
        except (OSError, ValueError):
            # ValueError: the stream is closed.
            self._lost += _lines(text.encode("utf-8", "backslashreplace"))
            self._fails = True

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                while not self._queue:
                    self._changed.wait()
                self._is_writing = True
                content = self._take()
            unwritten = self._write(content)
            with self._changed:
                self._lost += _lines(unwritten) if unwritten else 0
                self._fails = bool(unwritten)

    def _take(self) -> bytes:
        taken: list[bytes] = []
        size = 0
        while self._queue and (not taken or size + len(self._queue[0]) <= CALL_BYTES):
            taken.append(self._queue.popleft())
            size += len(taken[-1])
        self._queued_bytes -= size
        return b"".join(taken)

    def _write(self, content: bytes) -> bytes:
        """Write all; returns the rest that could not be written."""
        assert self._descriptor is not None
        while content:
            try:
                content = content[os.write(self._descriptor, content) :]
            except BlockingIOError:
                _wait_until_writable(self._descriptor)
            except OSError as error:
                if error.errno != errno.EINTR:
                    return content
        return b""


def _descriptor_of(stream: TextIO | None) -> int | None:
    try:
        return None if stream is None else stream.fileno()
    except (OSError, ValueError):
        return None


def _wait_until_writable(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    poll.poll(RETRY_MS)


def _lines(content: bytes) -> int:
    """Number of lines, a last one without its end included."""
    return content.count(b"\n") + (not content.endswith(b"\n"))


_STREAMS: "weakref.WeakSet[BackgroundStream]" = weakref.WeakSet()


def drain_all() -> None:
    """Give the queued lines of all streams a limited time, at the end of the process."""
    for stream in list(_STREAMS):
        stream.drain()


atexit.register(drain_all)
