"""Histograms as an engine counts them: how the values of one are divided, and what was counted.

Of each there are `n_counts` counters of 32 bits, one behind the other: what lies below the range, the bins, what lies
above, and what is not a number. Kernels only add to them; counts are modulo 2^32 until they are gathered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import U32, Column, Role

OUTSIDE = 3
"""Counters besides the bins."""

histogram_counts = Column(
    name="histograms.counts", dtype=U32, bound=lambda limits: limits.histogram_counts, role=Role.ACCUMULATED
)
"""The counters of all histograms of a workspace, those of one behind those of the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramShape:
    """Equal bins from `low` to `high`, in a unit such as "MeV" ("" without one).

    line: the line whose selected candidates it holds, "" for others.
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
        """How many counters it has."""
        return self.bins + OUTSIDE

    @property
    def edges(self) -> NDArray[np.float64]:
        """f64[bins + 1]."""
        return np.linspace(self.low, self.high, self.bins + 1)


@dataclass(frozen=True, slots=True)
class HistogramContent:
    """What a histogram holds: its counters as u64[n_counts]."""

    shape: HistogramShape
    counts: NDArray[np.uint64]

    @property
    def bins(self) -> NDArray[np.uint64]:
        """u64[bins]."""
        return self.counts[1:-2]

    @property
    def underflow(self) -> int:
        """Values below the range."""
        return int(self.counts[0])

    @property
    def overflow(self) -> int:
        """Values at its end or above."""
        return int(self.counts[-2])

    @property
    def not_a_number(self) -> int:
        """Values that are NaN, or of which a NaN leaves open whether they belong in."""
        return int(self.counts[-1])

    @property
    def entries(self) -> int:
        """Values in the range and outside, without NaN."""
        return int(self.counts[:-1].sum())


def n_counts(shapes: Sequence[HistogramShape]) -> int:
    """Counters of some histograms."""
    return sum(shape.n_counts for shape in shapes)


def contents(shapes: Sequence[HistogramShape], counts: NDArray[np.unsignedinteger]) -> Iterator[HistogramContent]:
    """The histograms that lie one behind the other in `counts`."""
    begin = 0
    for shape in shapes:
        end = begin + shape.n_counts
        yield HistogramContent(shape, counts[begin:end].astype(np.uint64))
        begin = end
