"""What a run of the model counts: latencies, levels over time, and MEPs by their end."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_BINS_PER_DECADE = 230
"""Bins of latencies are 1 % wide, so a quantile is exact to 1 %."""
_LOWEST_DECADE, _DECADES = -6, 12
_SCALE = _BINS_PER_DECADE / math.log(10.0)
_OFFSET = -_LOWEST_DECADE * _BINS_PER_DECADE
_BINS = _BINS_PER_DECADE * _DECADES
_LOWEST_NS = 1000


class Latencies:
    """A distribution of times in bins of 1 %, from 1 µs to 10 days. Its memory does not grow."""

    def __init__(self) -> None:
        self._counts = [0] * _BINS
        self.n = 0
        self.sum_ns = 0
        self.max_ns = 0

    def add(self, ns: int) -> None:
        """Count one time."""
        self.n += 1
        self.sum_ns += ns
        if ns > self.max_ns:
            self.max_ns = ns
        place = int(math.log(ns * 1e-9) * _SCALE + _OFFSET) if ns > _LOWEST_NS else 0
        self._counts[place if place < _BINS else _BINS - 1] += 1

    def join(self, other: "Latencies") -> None:
        """Add the entries of another distribution."""
        self._counts = [here + there for here, there in zip(self._counts, other._counts, strict=True)]
        self.n += other.n
        self.sum_ns += other.sum_ns
        self.max_ns = max(self.max_ns, other.max_ns)

    @property
    def mean(self) -> float:
        """The mean in seconds; 0 without entries."""
        return self.sum_ns / self.n * 1e-9 if self.n else 0.0

    def quantile(self, part: float) -> float | None:
        """The time in seconds that this part of the entries does not exceed; None if there are too few entries.

        The part beyond it has at least one entry.
        """
        if self.n * (1.0 - part) < 1.0:
            return None
        place = int(np.searchsorted(np.cumsum(self._counts), part * self.n))
        return min(self.max_ns * 1e-9, math.exp((place + 0.5 - _OFFSET) / _SCALE))

    def histogram(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Upper edges of the bins in seconds, and their entries, from the first to the last bin with an entry."""
        counts = np.array(self._counts, np.int64)
        [filled] = np.nonzero(counts)
        if not len(filled):
            return np.zeros(0), counts[:0]
        chosen = np.arange(filled[0], filled[-1] + 1)
        return np.exp((chosen + 1 - _OFFSET) / _SCALE), counts[chosen]


class Level:
    """A number that changes with time: its integral, and its largest value."""

    __slots__ = ("_since_ns", "integral", "largest", "value")

    def __init__(self) -> None:
        self.value = 0
        self.largest = 0
        self.integral = 0
        """Sum of value times duration in ns."""
        self._since_ns = 0

    def change(self, now_ns: int, by: int) -> None:
        """Change the number at a time."""
        self.integral += self.value * (now_ns - self._since_ns)
        self._since_ns = now_ns
        self.value += by
        if self.value > self.largest:
            self.largest = self.value


@dataclass(slots=True)
class FarmCounts:
    """MEPs of a farm. `produced = acknowledged + lost + left`, and every MEP is acknowledged once.

    produced: MEPs of the sources; lost: MEPs that found no room in the buffers of the sources; moved: assignments to
    another node after a loss; incomplete: MEPs that a node built without a fragment; refused: fragments that a node
    refused.
    """

    produced: int = 0
    acknowledged: int = 0
    lost: int = 0
    moved: int = 0
    incomplete: int = 0
    refused: int = 0
    in_farm: Level = field(default_factory=Level)
    """MEPs between their production and their acknowledgement."""
    waiting: Level = field(default_factory=Level)
    """MEPs in the buffers of the sources that no node has a credit for."""
    latency: Latencies = field(default_factory=Latencies)
    """Production to acknowledgement at the sources."""
    build: Latencies = field(default_factory=Latencies)
    """First fragment at the node to the close of the MEP."""
    service_wait: Latencies = field(default_factory=Latencies)
    """Sealed slot to the start of its batch."""
    service: Latencies = field(default_factory=Latencies)
    """Time of a batch in a back end."""
    delivery: Latencies = field(default_factory=Latencies)
    """Written batch to the last message that its consumers or the policies took; empty without consumers."""
