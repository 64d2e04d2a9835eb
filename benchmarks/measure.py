"""Medians and ratios: how every benchmark of hltnode measures and reports."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """One measured figure; `ratio` compares it with `baseline`, `target` is what the ratio should reach."""

    name: str
    value: float
    unit: str
    baseline: str
    ratio: float | None
    target: float | None = None

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None without a target."""
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
