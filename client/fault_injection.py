"""Fault injection: damages fragments as a network or a failing readout does, seeded so that tests are repeatable.

A sans-I/O filter between the send window of a feeder and its data socket. The window keeps every fragment until the
node acknowledges it. So feeder and node cannot tell an injected fault from a real one.
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum, unique
from heapq import heappop, heappush

from hltnode.protocol.buffers import Buffer

# At most this number of frames overtake a reordered one. With a few sources, this reorders across MEPs.
MAX_OVERTAKERS = 8
# A reordered frame leaves after this time at the latest: no frame follows the last ones of a run.
REORDER_NS = 50_000_000
# Delays lie on both sides of the default MEP timeout of 750 ms, so that some fragments arrive too late.
DELAY_NS = (10_000_000, 2_000_000_000)


@unique
class Fault(StrEnum):
    """Kinds of faults of a fragment."""

    DROP = "drop"
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    CORRUPT = "corrupt"
    DELAY = "delay"


class FaultSpecError(ValueError):
    """The fault specification is invalid; the message names the part and the expected form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """Probability of each fault per fragment; after `kill_after` fragments the feeder kills itself."""

    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    delay: float = 0.0
    kill_after: int | None = None

    @classmethod
    def parse(cls, specification: str) -> "FaultPlan":
        """Parse `drop=0.01,reorder=0.05,kill-after=1000`. Raises FaultSpecError."""
        known = {field.name.replace("_", "-"): field.name for field in fields(cls)}
        values: dict[str, float | int] = {}
        for part in specification.split(","):
            name, equals, text = part.strip().partition("=")
            if name not in known or not equals:
                raise FaultSpecError(f"fault {part.strip()!r}: expected NAME=VALUE with a NAME of {', '.join(known)}")
            if known[name] in values:
                raise FaultSpecError(f"fault {name!r} is given twice")
            values[known[name]] = _fragments(text) if name == "kill-after" else _probability(name, text)
        return cls(**values)  # type: ignore[arg-type]


class FaultInjector:
    """Draws the faults of each frame of one connection. Times are monotonic nanoseconds.

    The same plan, seed and sequence of frames give the same faults; only the release of delayed frames depends on time.
    """

    def __init__(self, plan: FaultPlan, seed: int | str) -> None:
        self._plan = plan
        self._random = random.Random(seed)
        self._overtaken: deque[tuple[int, int, Buffer]] = deque()
        self._delayed: list[tuple[int, int, Buffer]] = []
        self._frames = 0
        self.counts: dict[Fault, int] = dict.fromkeys(Fault, 0)
        """Faults injected so far."""

    @property
    def kills(self) -> bool:
        """True after `kill_after` fragments."""
        return self._plan.kill_after is not None and self._frames >= self._plan.kill_after

    @property
    def next_due_ns(self) -> int | None:
        """Release time of the next held frame; None if none is held."""
        times = [entry[1] for entry in self._overtaken]
        if self._delayed:
            times.append(self._delayed[0][0])
        return min(times, default=None)

    def take(self, now_ns: int, frame: Buffer) -> Sequence[Buffer]:
        """Apply the plan to one frame; returns the frames to send now, in this order."""
        plan, rng = self._plan, self._random
        self._frames += 1
        drop, duplicate, reorder, corrupt, delay = (rng.random() for _ in Fault)
        out: list[Buffer] = []
        if drop < plan.drop:
            self.counts[Fault.DROP] += 1
        else:
            if corrupt < plan.corrupt:
                self.counts[Fault.CORRUPT] += 1
                frame = _with_a_bit_flipped(frame, rng)
            if delay < plan.delay:
                self.counts[Fault.DELAY] += 1
                heappush(self._delayed, (now_ns + rng.randint(*DELAY_NS), self._frames, frame))
            elif reorder < plan.reorder:
                self.counts[Fault.REORDER] += 1
                self._overtaken.append((self._frames + rng.randint(1, MAX_OVERTAKERS), now_ns + REORDER_NS, frame))
            else:
                out.append(frame)
            if duplicate < plan.duplicate:
                self.counts[Fault.DUPLICATE] += 1
                out.append(frame)
        out += self.due(now_ns)
        return out

    def due(self, now_ns: int) -> list[Buffer]:
        """The held frames that are due."""
        waiting = self._overtaken
        out = [frame for at, until_ns, frame in waiting if at <= self._frames or until_ns <= now_ns]
        if out:
            self._overtaken = deque(entry for entry in waiting if entry[0] > self._frames and entry[1] > now_ns)
        while self._delayed and self._delayed[0][0] <= now_ns:
            out.append(heappop(self._delayed)[2])
        return out


def _with_a_bit_flipped(frame: Buffer, rng: random.Random) -> bytes:
    damaged = bytearray(frame)
    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def _probability(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise FaultSpecError(f"fault {name!r}: expected a probability from 0 to 1, not {text!r}")
    return value


def _fragments(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise FaultSpecError(f"fault 'kill-after': expected a number of fragments from 1, not {text!r}")
    return int(text)
