"""Statistical errors of counted rates, also of events with weights."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

ONE_SIGMA = 1.0
"""Half the width of a normal distribution's central 68.27 % in standard deviations: intervals are "one sigma"."""
WANTED_ERROR = 0.1
"""The relative error for which reports state the number of events that it needs."""


def wilson_interval(
    passed: ArrayLike, total: ArrayLike, z: float = ONE_SIGMA
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper end of the Wilson score interval of passed / total; nan if total is 0.

    z = 1 gives 68.3 % confidence. E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209.
    """
    k, n = np.asarray(passed, dtype=np.float64), np.asarray(total, dtype=np.float64)
    safe = np.where(n > 0, n, np.nan)
    rate = k / safe
    centre = (rate + z**2 / (2 * safe)) / (1 + z**2 / safe)
    half = z / (1 + z**2 / safe) * np.sqrt(np.maximum(rate * (1 - rate), 0) / safe + z**2 / (4 * safe**2))
    # The interval must include the rate despite rounding.
    return np.clip(centre - half, 0, rate), np.clip(centre + half, rate, 1)


@dataclass(frozen=True, slots=True)
class WeightSums:
    """Sums over the weights of events: their number, the weights, the squares, and the largest weight."""

    events: int = 0
    weights: float = 0.0
    squares: float = 0.0
    largest: float = 0.0

    @classmethod
    def of(cls, weights: NDArray[np.float64]) -> "WeightSums":
        """The sums of some events."""
        if not len(weights):
            return cls()
        return cls(len(weights), float(weights.sum()), float((weights**2).sum()), float(weights.max()))

    def __add__(self, other: "WeightSums") -> "WeightSums":
        return WeightSums(
            self.events + other.events,
            self.weights + other.weights,
            self.squares + other.squares,
            max(self.largest, other.largest),
        )

    @property
    def are_equal(self) -> bool:
        """Whether all events have the weight 1."""
        return self.largest <= 1.0 and self.weights == self.events

    @property
    def effective(self) -> float:
        """Number of events of equal weight with the same relative error of their sum."""
        return self.weights**2 / self.squares if self.squares else 0.0


@dataclass(frozen=True, slots=True)
class Fraction:
    """A fraction of events with weights, and the ends of its interval of 68.3 %.

    events_needed: events of the same sample that the fraction needs for a relative error of WANTED_ERROR; where no
    event passed, the least number, which belongs to the upper end. All nan without an event.
    """

    value: float
    low: float
    high: float
    events_needed: float


def fraction(passed: float, squares: float, total: WeightSums) -> Fraction:
    """The fraction of the events of `total` that pass, from the sums of their weights and squared weights.

    The error is that of a ratio of sums, in which the sum of the squared weights stands for the variance of a sum. The
    interval is the Wilson interval of the number of equal events that have this error; with equal weights, of the
    events. Without a passing event the variance is unknown: the interval is that of equal events which all have the
    largest weight, since the events that could have passed may be those.
    """
    if not total.events:
        return Fraction(np.nan, np.nan, np.nan, np.nan)
    value = passed / total.weights
    trials = float(total.events) if total.are_equal else _equal_trials(value, squares, total)
    low, high = (float(end) for end in wilson_interval(value * trials if not total.are_equal else passed, trials))
    rate = value if passed else high
    return Fraction(value, low, high, total.events * trials_needed(rate) / trials)


def _equal_trials(value: float, squares: float, total: WeightSums) -> float:
    variance = ((1 - 2 * value) * squares + value**2 * total.squares) / total.weights**2
    # Rounding must not decide where nearly all events pass.
    if not 0 < value < 1 or variance <= 0:
        return total.weights / total.largest
    return value * (1 - value) / variance


def trials_needed(rate: float, relative: float = WANTED_ERROR) -> float:
    """Trials for which half of the Wilson interval of a rate is this part of the rate, at least one."""
    # (n + 1)² relative² rate² = n rate (1 - rate) + 1 / 4, solved for n + 1.
    wanted, spread = (relative * rate) ** 2, rate * (1 - rate)
    root = np.sqrt(max(spread**2 - 4 * wanted * (spread - 0.25), 0.0))
    return max(float((spread + root) / (2 * wanted)) - 1, 1.0)
