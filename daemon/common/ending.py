"""How Ctrl-C (SIGINT) and SIGTERM end a command: one line, and the exit code by which shells know the signal.

Until a command runs, which is while modules are imported, a signal ends the process where it is: nothing is there to be
cleaned up, and libraries turn an exception within their imports into other errors. The command itself is ended by an
exception, so that it removes its temporary files and ends its processes. A second signal does not wait for that.
Commands that end in another way (`serve` drains, `replay` reports) take the signals themselves.
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

_came: list[int] = []


def end_at_once(number: int, _frame: FrameType | None = None) -> NoReturn:
    """End the process, with its line and exit code, and without cleaning up."""
    os.write(2, f"{SIGNALS[signal.Signals(number)]}\n".encode())
    os._exit(128 + number)


def _end_by_exception(number: int, _frame: FrameType | None) -> NoReturn:
    _came.append(number)
    take_signals(end_at_once)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _cannot_be_raised(unraisable: "sys.UnraisableHookArgs") -> None:
    """An exception in a destructor or a callback goes nowhere: the signal would be lost."""
    if _came and isinstance(unraisable.exc_value, KeyboardInterrupt | SystemExit):
        end_at_once(_came[0])
    sys.__unraisablehook__(unraisable)


def take_signals(handler: Callable[[int, FrameType | None], NoReturn]) -> None:
    """Let SIGINT and SIGTERM call a function."""
    for number in SIGNALS:
        signal.signal(number, handler)


def run_to_its_end(command: Callable[[], object]) -> NoReturn:
    """Run a command, which ends by SystemExit, and end the process with its exit code."""
    sys.unraisablehook = _cannot_be_raised
    take_signals(_end_by_exception)
    try:
        command()
    except (SystemExit, KeyboardInterrupt):
        if not _came:
            raise
    finally:
        take_signals(end_at_once)
    if _came:
        sys.stdout.flush()
        # Threads of libraries may still compute in memory that Python would free now.
        end_at_once(_came[0])
    raise SystemExit(0)
