"""Bins of the variables against which rates and resolutions are drawn."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hltnode.processing.offline.arrays import Float64Array, Int64Array

# Of a normal distribution, within one standard deviation.
CENTRAL_68 = 0.6827


@dataclass(frozen=True, slots=True, eq=False)
class Binning:
    """Bins of one variable: `edges` f64[n + 1], in the unit `unit` of the plot; values outside all bins are not
    counted.

    `title` is the axis label; `scale` turns the checker's units (MeV, mm) into `unit`.
    """

    title: str
    unit: str
    edges: Float64Array
    scale: float = 1.0
    logarithmic: bool = False

    def __len__(self) -> int:
        return len(self.edges) - 1

    def bins_of(self, values: ArrayLike) -> Int64Array:
        """The bin of each value, given in the checker's units; len(self) for those outside."""
        scaled = np.asarray(values, dtype=np.float64) * self.scale
        found = np.searchsorted(self.edges, scaled, side="right") - 1
        inside = (scaled >= self.edges[0]) & (scaled < self.edges[-1])
        return np.where(inside, found, len(self))

    def count(self, bins: Int64Array, weights: Float64Array | None = None) -> Float64Array:
        """Entries (or the sum of their weights) per bin, from the bins of the entries."""
        return np.bincount(bins, weights, minlength=len(self) + 1)[: len(self)].astype(np.float64)
