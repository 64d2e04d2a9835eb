"""How Ctrl-C (SIGINT) and SIGTERM end a command: one line on standard error, and the exit code of the signal.

While modules are imported, a signal ends the process at once: there is nothing to clean up, and libraries turn an
exception within their imports into other errors. A running command ends by an exception, so that it removes its
temporary files and ends its child processes. A second signal ends the process without this clean-up. Commands with an
end of their own (`serve` drains, `replay` reports) handle the signals themselves.
"""

import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

STDERR = 2
# Longest wait for a reader of standard error that stalls.
SAY_MS = 500
SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

_came: list[int] = []


def end_at_once(number: int, _frame: FrameType | None = None) -> NoReturn:
    """End the process with the line and the exit code of the signal, without clean-up."""
    _say(f"{SIGNALS[signal.Signals(number)]}\n")
    os._exit(128 + number)


def _say(text: str) -> None:
    """Write to standard error, unless it would block or has no reader: the end of the process must not wait for it."""
    poll = select.poll()
    poll.register(STDERR, select.POLLOUT)
    if poll.poll(SAY_MS):
        with suppress(OSError):
            os.write(STDERR, text.encode())


def _end_by_exception(number: int, _frame: FrameType | None) -> NoReturn:
    _came.append(number)
    take_signals(end_at_once)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _is_by_a_signal(error: BaseException) -> bool:
    """Python or a library may wrap the exception of a signal: `__set_name__` during an import, for example."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, KeyboardInterrupt | SystemExit):
            return True
        seen.add(id(cause))
        cause = cause.__cause__
    return False


def _cannot_be_raised(unraisable: "sys.UnraisableHookArgs") -> None:
    """Python only prints an exception of a destructor or a callback: the signal would be lost."""
    if _came and isinstance(unraisable.exc_value, KeyboardInterrupt | SystemExit):
        end_at_once(_came[0])
    sys.__unraisablehook__(unraisable)


def take_signals(handler: Callable[[int, FrameType | None], NoReturn]) -> None:
    """Install a handler for SIGINT and SIGTERM."""
    for number in SIGNALS:
        signal.signal(number, handler)


def run_to_its_end(command: Callable[[], object]) -> NoReturn:
    """Run a command that raises SystemExit, and end the process with its exit code."""
    sys.unraisablehook = _cannot_be_raised
    take_signals(_end_by_exception)
    try:
        command()
    except (SystemExit, KeyboardInterrupt):
        if not _came:
            raise
    except Exception as error:
        if not (_came and _is_by_a_signal(error)):
            raise
    finally:
        take_signals(end_at_once)
    if _came:
        with suppress(OSError):
            sys.stdout.flush()
        # Threads of libraries may still compute in memory that a normal exit of Python would free.
        end_at_once(_came[0])
    raise SystemExit(0)
