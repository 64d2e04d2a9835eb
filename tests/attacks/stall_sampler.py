"""`hltnode serve` whose event loop explains its stalls: python -m tests.attacks.stall_sampler serve --config FILE.

Each stall is a line of `stalls.json` beside FILE; a long one has the Python stack of the event loop during the stall.
The stack comes from a thread without the lock of the interpreter, so a call that keeps this lock shows too.
"""

import asyncio
import faulthandler
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

import uvloop

from hltnode.daemon.cli import app

TURN_SECONDS = 0.1
RECORDED_SECONDS = 0.05
"""Delay of a turn that is recorded."""
STACK_SECONDS = 0.5
"""Delay of a turn after which the stack is taken."""
SHOWN_FRAMES = 4
FILE, STACKS = "stalls.json", "stalls.stack"


@dataclass(frozen=True, slots=True)
class Stall:
    """A time in which the event loop did not run."""

    at: float
    """Its end (CLOCK_MONOTONIC in seconds)."""
    seconds: float
    computed_s: float
    """Processor time of the thread of the loop; the rest, it waited."""
    queued_s: float
    """Time in which this thread could run and other threads had the processors."""
    stack: tuple[str, ...]
    """Innermost frames of this thread, the last call first; empty if the stall was short."""

    @property
    def own_s(self) -> float:
        """The part that the node has caused: a machine with other work keeps the processors from its threads."""
        return max(0.0, self.seconds - self.queued_s)

    def __str__(self) -> str:
        return (
            f"stall of {self.seconds:.2f} s: computed {self.computed_s:.2f} s, without a processor "
            f"{self.queued_s:.2f} s, waited {max(0.0, self.own_s - self.computed_s):.2f} s; {' < '.join(self.stack)}"
        )


class StallSampler:
    """Takes the stack of the thread of an event loop whenever the loop makes no turn, until `close`."""

    def __init__(self, directory: Path) -> None:
        self._new_loop = uvloop.new_event_loop
        self._file = directory / FILE
        self._file.touch()
        # Descriptors, because faulthandler writes to one.
        self._stacks = os.open(directory / STACKS, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due = 0.0
        self._times = (0.0, 0.0)

    def make_loop(self) -> asyncio.AbstractEventLoop:
        """A new loop, whose stalls are recorded."""
        self._loop = self._new_loop()
        self._due, self._times = time.monotonic(), _thread_times()
        self._loop.call_soon(self._turn)
        return self._loop

    def close(self) -> None:
        """Take no more stacks."""
        faulthandler.cancel_dump_traceback_later()
        os.close(self._stacks)

    def _turn(self) -> None:
        assert self._loop is not None
        faulthandler.cancel_dump_traceback_later()
        now, times = time.monotonic(), _thread_times()
        if (late := now - self._due) > RECORDED_SECONDS:
            computed, queued = (after - before for after, before in zip(times, self._times, strict=True))
            with self._file.open("a") as file:
                file.write(json.dumps(asdict(Stall(now, late, computed, queued, self._stack()))) + "\n")
        self._times, self._due = times, now + TURN_SECONDS
        faulthandler.dump_traceback_later(TURN_SECONDS + STACK_SECONDS, file=self._stacks)
        self._loop.call_later(TURN_SECONDS, self._turn)

    def _stack(self) -> tuple[str, ...]:
        size = os.fstat(self._stacks).st_size
        # The thread of the loop began first, and is the last one.
        lines = os.pread(self._stacks, size, 0).decode().split("Thread 0x")[-1].splitlines()[1 : 1 + SHOWN_FRAMES]
        os.ftruncate(self._stacks, 0)
        return tuple(line.strip().removeprefix("File ") for line in lines)


def read_stalls(directory: Path) -> list[Stall] | None:
    """The stalls of a node whose configuration is in this directory; None if it does not record them."""
    file = directory / FILE
    if not file.exists():
        return None
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [Stall(**{**row, "stack": tuple(row["stack"])}) for row in rows]


def longest_stall(stalls: Sequence[Stall], since: float) -> tuple[float, list[Stall]]:
    """Seconds of the longest stall that ended after a time, without the time for which no processor was free; and the
    stalls with a stack."""
    later = [stall for stall in stalls if stall.at > since]
    return max((stall.own_s for stall in later), default=0.0), [stall for stall in later if stall.stack]


def _thread_times() -> tuple[float, float]:
    """Processor time of this thread, and the time in which it waited for a processor."""
    queued = int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    return time.thread_time(), queued * 1e-9


if __name__ == "__main__":
    sampler = StallSampler(Path(sys.argv[-1]).parent)
    with closing(sampler), patch.object(uvloop, "new_event_loop", sampler.make_loop):
        app()
