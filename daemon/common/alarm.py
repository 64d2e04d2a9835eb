"""A timer of the event loop with microsecond precision: asyncio rounds its own timers up to milliseconds."""

import asyncio
import ctypes
import os
import time
from collections.abc import Callable

_TFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_SECOND_NS = 1_000_000_000


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


# PyDLL keeps the interpreter lock: the call takes a microsecond, and getting the lock back may take a hundred.
_libc = ctypes.PyDLL(None, use_errno=True)


class Alarm:
    """Calls `ring` in the event loop once for each `set`; a later `set` replaces an earlier one.

    A timerfd (timerfd_create(2)) on the monotonic clock. All calls come from the thread of the loop.

    Raises OSError: no descriptor is left.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._spec = _TimerSpec()
        self._reference = ctypes.byref(self._spec)
        self._descriptor = _checked(_libc.timerfd_create(time.CLOCK_MONOTONIC, _TFD_FLAGS))
        loop.add_reader(self._descriptor, self._expired)

    def set(self, delay_ns: int) -> None:
        """Ring after this time; at once if it is zero or negative."""
        value = self._spec.value
        # 0 would stop the timer.
        value.seconds, value.nanoseconds = divmod(max(1, delay_ns), _SECOND_NS)
        _checked(_libc.timerfd_settime(self._descriptor, 0, self._reference, None))

    def close(self) -> None:
        """Cancel the pending ring."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _expired(self) -> None:
        try:
            os.read(self._descriptor, 8)
        except BlockingIOError:
            # The timer was set again between its expiry and this callback.
            return
        self._ring()


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
