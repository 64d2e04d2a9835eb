"""Bins of a variable, for rates and resolutions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hltnode.processing.offline.arrays import Float64Array, Int64Array

# Fraction of a normal distribution within one standard deviation.
CENTRAL_68 = 0.6827


@dataclass(frozen=True, slots=True, eq=False)
class Binning:
    """Bins of one variable: `edges` f64[n + 1], in the unit `unit` of the plot; values outside all bins are not
    counted.

    `title` is the axis label; `scale` converts values as they are given (MeV, mm) to `unit`.
    """

    title: str
    unit: str
    edges: Float64Array
    scale: float = 1.0
    logarithmic: bool = False

    def __len__(self) -> int:
        return len(self.edges) - 1

    def bins_of(self, values: ArrayLike) -> Int64Array:
        """The bin of each value, before scaling; len(self) for values outside all bins."""
        scaled = np.asarray(values, dtype=np.float64) * self.scale
        found = np.searchsorted(self.edges, scaled, side="right") - 1
        inside = (scaled >= self.edges[0]) & (scaled < self.edges[-1])
        return np.where(inside, found, len(self))

    def count(self, bins: Int64Array, weights: Float64Array | None = None) -> Float64Array:
        """Entries (or the sum of their weights) per bin, from the bins of the entries."""
        return np.bincount(bins, weights, minlength=len(self) + 1)[: len(self)].astype(np.float64)
