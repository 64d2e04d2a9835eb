"""Medians and ratios, the common form of all benchmarks of hltnode."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """One measured figure; `ratio` compares it with `baseline`, and `target` is the target of the ratio."""

    name: str
    value: float
    unit: str
    baseline: str
    ratio: float | None
    target: float | None = None

    @property
    def reached(self) -> bool | None:
        """True if the target is reached; None without a target."""
        return None if self.target is None or self.ratio is None else self.ratio >= self.target


def median(measure: Callable[[], float], runs: int) -> float:
    """Median of several runs, after one warm-up run."""
    measure()
    return statistics.median(measure() for _ in range(runs))


def alternating_medians(first: Callable[[], float], second: Callable[[], float], runs: int) -> tuple[float, float]:
    """Medians of two measurements taken in turn, so that the noise of a shared machine is the same for both."""
    first()
    second()
    pairs = [(first(), second()) for _ in range(runs)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


@dataclass(frozen=True, slots=True)
class Throughput:
    """Items per second, and processor time per item of the whole process, I/O threads included (µs).

    On a shared machine, other work affects the rate, but hardly the processor time.
    """

    per_second: float
    cpu_us: float


class Stopwatch:
    """A stopwatch that starts at its creation."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def throughput(self, items: int) -> Throughput:
        """The cost of this number of items since the start."""
        seconds, cpu = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        return Throughput(items / seconds, cpu / items * 1e6)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Medians of two measurements taken in turn, and the medians of the ratios per turn.

    A ratio above 1 says that the second is better: more per second, or less processor time.
    """

    first: Throughput
    second: Throughput
    ratio: float
    cpu_ratio: float


def in_turn(measures: Sequence[Callable[[], Throughput]], runs: int) -> list[list[Throughput]]:
    """Results by measure and turn, after one warm-up of all; every other turn runs in reverse order."""
    for measure in measures:
        measure()
    taken: list[list[Throughput]] = [[] for _ in measures]
    forwards = list(zip(measures, taken, strict=True))
    for turn in range(runs):
        for measure, found in reversed(forwards) if turn % 2 else forwards:
            found.append(measure())
    return taken


def compare(first: Sequence[Throughput], second: Sequence[Throughput]) -> Comparison:
    """Compare two measurements of the same turns."""
    pairs = list(zip(first, second, strict=True))
    return Comparison(
        _medians(first),
        _medians(second),
        ratio=statistics.median(b.per_second / a.per_second for a, b in pairs),
        cpu_ratio=statistics.median(a.cpu_us / b.cpu_us for a, b in pairs),
    )


def compare_in_turn(first: Callable[[], Throughput], second: Callable[[], Throughput], runs: int) -> Comparison:
    """Measure both in turn, after one warm-up of each; every other turn begins with the second."""
    return compare(*in_turn((first, second), runs))


def _medians(taken: Sequence[Throughput]) -> Throughput:
    return Throughput(statistics.median(it.per_second for it in taken), statistics.median(it.cpu_us for it in taken))
