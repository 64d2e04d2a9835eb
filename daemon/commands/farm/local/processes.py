"""Processes that end with this one, and the signals that end a farm."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from hltnode.daemon.commands.demo_processes import STOP_SECONDS
from hltnode.daemon.commands.tied import tied

HLTNODE = (sys.executable, "-P", "-m", "hltnode.daemon")
"""The command line of hltnode, with this Python."""
SHOWN_LINES = 20


class FarmFailedError(RuntimeError):
    """The farm on this machine failed; the message is the reason."""


class EndedBySignalError(Exception):
    """A signal ends the command at once."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


class Processes:
    """Starts programs; the kernel kills them when this process ends. Each has a session, and a log of its own."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a program, whose output is added to `log`."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                tied(command), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self._started.append(process)
        return process

    def kill_all(self) -> None:
        """Kill what still runs, and wait for its end."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
        for process in self._started:
            process.wait()


@contextlib.contextmanager
def processes() -> Iterator[Processes]:
    """Processes of which none is left at the end."""
    started = Processes()
    try:
        yield started
    finally:
        started.kill_all()


def stop(process: subprocess.Popen[bytes], number: int = signal.SIGTERM, seconds: float = STOP_SECONDS) -> int:
    """Send a signal, wait for the end, and return the exit code; kill a process that does not end in time."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def end_of(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-SHOWN_LINES:])


class EndSignals:
    """SIGINT, SIGTERM and SIGHUP: each raises EndedBySignalError, or only the second one after `wait_for_first`."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The first signal after `wait_for_first`."""
        self._is_noted = False
        self._is_over = False

    def wait_for_first(self) -> None:
        """From now on the first signal is noted, for an orderly end."""
        self._is_noted = True

    def _came(self, number: int, _frame: FrameType | None) -> None:
        if self._is_over:
            return
        if self._is_noted and self.number is None:
            self.number = number
            return
        # The end itself, with its kills, is not interrupted.
        self._is_over = True
        raise EndedBySignalError(number)

    def wait(self, seconds: float) -> bool:
        """Sleep; True if a signal has come, in the same moment."""
        end = time.monotonic() + seconds
        while self.number is None and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))
        return self.number is not None


@contextlib.contextmanager
def end_signals() -> Iterator[EndSignals]:
    """Follow the signals; afterwards they do what they did before."""
    signals = EndSignals()
    numbers = [signal.SIGINT, signal.SIGTERM]
    # Under nohup the farm outlives its terminal.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = [signal.signal(number, signals._came) for number in numbers]
    try:
        yield signals
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
