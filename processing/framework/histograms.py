"""Histograms of an engine: their bins and their counts.

Each has `n_counts` consecutive 32-bit counters: below the range, the bins, above the range, and NaN. Kernels only add
to them; counts are modulo 2^32 until they are gathered.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import U32, Column, Role

OUTSIDE = 3
"""Number of counters besides the bins."""

histogram_counts = Column(
    name="histograms.counts", dtype=U32, bound=lambda limits: limits.histogram_counts, role=Role.ACCUMULATED
)
"""The counters of all histograms of a workspace, histogram by histogram."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramShape:
    """Equal bins from `low` to `high`, in a unit such as "MeV" ("" without one).

    line: the line with the counted candidates, "" for other histograms.
    """

    name: str
    bins: int
    low: float
    high: float
    unit: str = ""
    description: str = ""
    line: str = ""

    @property
    def n_counts(self) -> int:
        """Number of counters."""
        return self.bins + OUTSIDE

    @property
    def edges(self) -> NDArray[np.float64]:
        """Bin edges, f64[bins + 1]."""
        return np.linspace(self.low, self.high, self.bins + 1)


@dataclass(frozen=True, slots=True)
class HistogramContent:
    """Content of a histogram: its counters as u64[n_counts]."""

    shape: HistogramShape
    counts: NDArray[np.uint64]

    @property
    def bins(self) -> NDArray[np.uint64]:
        """Counts of the bins, u64[bins]."""
        return self.counts[1:-2]

    @property
    def underflow(self) -> int:
        """Number of values below the range."""
        return int(self.counts[0])

    @property
    def overflow(self) -> int:
        """Number of values at or above the end of the range."""
        return int(self.counts[-2])

    @property
    def not_a_number(self) -> int:
        """Number of values that are NaN, or whose condition a NaN makes unknown."""
        return int(self.counts[-1])

    @property
    def entries(self) -> int:
        """Number of values inside and outside the range, without NaN."""
        return int(self.counts[:-1].sum())

    @property
    def median(self) -> float:
        """The median of the values, spread evenly within each bin; NaN without values.

        A median outside the range is given as the end of the range.
        """
        shape = self.shape
        up_to = np.cumsum(self.counts[:-1].astype(np.float64))
        half = up_to[-1] / 2
        place = int(np.searchsorted(up_to, half))
        if not half:
            return math.nan
        if place == 0:
            return shape.low
        if place > shape.bins:
            return shape.high
        width = (shape.high - shape.low) / shape.bins
        inside = (half - up_to[place - 1]) / float(self.counts[place])
        return float(shape.low + width * (place - 1 + inside))


def n_counts(shapes: Sequence[HistogramShape]) -> int:
    """Counters of some histograms."""
    return sum(shape.n_counts for shape in shapes)


def contents(shapes: Sequence[HistogramShape], counts: NDArray[np.unsignedinteger]) -> Iterator[HistogramContent]:
    """The histograms with consecutive counters in `counts`."""
    begin = 0
    for shape in shapes:
        end = begin + shape.n_counts
        yield HistogramContent(shape, counts[begin:end].astype(np.uint64))
        begin = end
