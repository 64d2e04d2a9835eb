"""Compares two revisions on the same events, in processes that take turns on one processor."""

import json
import os
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from benchmarks.cpu.forms import NO_CUT, Form, Sample
from benchmarks.cpu.revision import WORKING_TREE, Revision

WORKER = Path(__file__).with_name("worker.py")
COUNT_TOLERANCE = 0.002
"""Relative tolerance of the sum of a count over all events."""
EVENTS_OF_TURN = 1500
"""Approximate number of events of a turn, which takes some tenths of a second."""


class RefusedError(Exception):
    """The revisions, events or results cannot be compared."""


class Worker:
    """A process that computes one chain of one revision. Raises RefusedError if the revision does not have it."""

    def __init__(self, revision: Revision, work: Mapping[str, object]) -> None:
        self.revision = revision
        self._process = subprocess.Popen(
            [*revision.command(WORKER), json.dumps(work)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=revision.environment(),
            cwd=WORKER.parent,
            text=True,
        )
        self.first = self._answer()
        if "refused" in self.first:
            self.__exit__()
            raise RefusedError(f"{revision.name}: {self.first['refused']}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RefusedError(f"{self.revision.name}: its process has ended; its output is above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def measure(self, *, profile: bool = False) -> "Turn":
        """Times of one turn."""
        assert self._process.stdin is not None
        batches = max(1, round(EVENTS_OF_TURN / self.first["events"]))
        self._process.stdin.write(json.dumps({"batches": batches, "profile": profile}) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        per_event = 1e6 / answer["events"]
        algorithms = {name: seconds * per_event for name, seconds in answer["algorithms"].items()}
        return Turn(answer["cpu"] * per_event, answer["wall"] * per_event, algorithms)


@dataclass(frozen=True, slots=True)
class Turn:
    """Times per event in us: processor time, wall time, processor time by algorithm."""

    cpu: float
    wall: float
    algorithms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles."""

    median: float
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """The quartiles of two or more values."""
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, lower, upper)


@dataclass(frozen=True, slots=True)
class Compared:
    """One form on one sample. `ratio`: processor time of the other revision over that of this one, per turn."""

    form: str
    sample: str
    target: str
    events: int
    ratio: Spread
    wall_ratio: Spread
    cpu_us: Spread
    wall_us: Spread
    baseline_cpu_us: Spread
    baseline_wall_us: Spread
    counts: Mapping[str, tuple[int, int]]
    """Sums over the events, of this and of the other revision."""
    algorithms_us: Mapping[str, float]
    baseline_algorithms_us: Mapping[str, float]


def work_of(
    form: Form, sample: Sample, sequence: str, threads: int = 1, instructions: str | None = None
) -> dict[str, object]:
    """The description of the work for a worker. `instructions`: as in `Work`."""
    return {
        "sequence": sequence,
        "encoding": form.encoding,
        "files": [str(sample.files[form.encoding])],
        "geometry": None if sample.geometry is None else str(sample.geometry),
        "copies": sample.copies,
        "threads": threads,
        "overrides": [] if sequence.startswith("velo") else NO_CUT,
        "instructions": instructions,
        "pinned": sorted(os.sched_getaffinity(0))[-threads:],
    }


def refuse_unlike(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Raises RefusedError unless two workers have the same events, flags and counts."""
    for what in ("events", "digest", "target"):
        if ours[what] != theirs[what]:
            raise RefusedError(f"not the same {what}: {ours[what]} here, {theirs[what]} there")
    if ours["flags"] != theirs["flags"]:
        n = sum(a != b for a, b in zip(ours["flags"], theirs["flags"], strict=True))
        raise RefusedError(f"{n} of {ours['events']} events have other flags")
    for name, (here, there) in _sums(ours, theirs).items():
        if abs(here - there) > COUNT_TOLERANCE * there:
            raise RefusedError(
                f"different physics: {here} {name} here, {there} there, more than {COUNT_TOLERANCE:.1%} apart"
            )


def _sums(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    of_both = [name for name in theirs["counts"] if name in ours["counts"]]
    return {name: (sum(ours["counts"][name]), sum(theirs["counts"][name])) for name in of_both}


def compare(form: Form, sample: Sample, other: Revision, turns: int, instructions: str | None = None) -> Compared:
    """Measure in turn, with the best instruction set of this machine or a given one; every other turn begins with this
    revision. Raises RefusedError if the work differs."""
    with ExitStack() as stack:
        work = partial(work_of, form, sample, instructions=instructions)
        theirs = stack.enter_context(Worker(other, work(form.baseline)))
        ours = stack.enter_context(Worker(WORKING_TREE, work(form.sequence)))
        refuse_unlike(ours.first, theirs.first)
        pairs = list(_in_turn(ours, theirs, turns))
        profiles = [(ours.measure(profile=True), theirs.measure(profile=True)) for _ in range(max(3, turns // 3))]
        return Compared(
            form.name,
            sample.name,
            ours.first["target"],
            ours.first["events"],
            Spread.of([there.cpu / here.cpu for here, there in pairs]),
            Spread.of([there.wall / here.wall for here, there in pairs]),
            Spread.of([here.cpu for here, _ in pairs]),
            Spread.of([here.wall for here, _ in pairs]),
            Spread.of([there.cpu for _, there in pairs]),
            Spread.of([there.wall for _, there in pairs]),
            _sums(ours.first, theirs.first),
            _median_of_algorithms([here.algorithms for here, _ in profiles]),
            _median_of_algorithms([there.algorithms for _, there in profiles]),
        )


def _in_turn(ours: Worker, theirs: Worker, turns: int) -> Iterator[tuple[Turn, Turn]]:
    ours.measure()
    theirs.measure()
    for turn in range(turns):
        if turn % 2:
            here = ours.measure()
            yield here, theirs.measure()
        else:
            there = theirs.measure()
            yield ours.measure(), there


def _median_of_algorithms(turns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
