"""Distributions of residuals in bins of a variable: resolutions and pulls."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.checks.binning import CENTRAL_68, Binning

# Wider bins would limit the widths that are read from the histogram.
_RESIDUAL_BINS = 400
DRAWN_TOGETHER = 8
"""Fine bins per bin of a plot."""


@dataclass(slots=True)
class ResidualHistogram:
    """Counts of a residual in bins of a variable; `limit` is the largest residual with a bin of its own.

    Residuals beyond +-limit go to the outermost bins, so that central widths are correct.
    """

    title: str
    unit: str
    limit: float
    against: Binning
    counts: Float64Array = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros((len(self.against), _RESIDUAL_BINS))

    @property
    def edges(self) -> Float64Array:
        """Edges of the bins of the residual."""
        return np.linspace(-self.limit, self.limit, _RESIDUAL_BINS + 1)

    def add(self, residual: Float64Array, variable: Float64Array) -> None:
        """Count residuals (in `unit`) at values of the variable; values that are not finite are left out."""
        row = self.against.bins_of(variable)
        chosen = (row < len(self.against)) & np.isfinite(residual)
        place = np.floor((residual[chosen] / self.limit + 1) / 2 * _RESIDUAL_BINS)
        column = np.clip(place, 0, _RESIDUAL_BINS - 1).astype(np.int64)
        flat = np.bincount(row[chosen] * _RESIDUAL_BINS + column, minlength=self.counts.size)
        self.counts += flat.reshape(self.counts.shape)

    def result(self) -> dict[str, Any]:
        """The JSON object: bins, counts, and the width of each bin of the variable and of all together."""
        return {
            "title": self.title,
            "unit": self.unit,
            "limit": self.limit,
            "against": {"title": self.against.title, "unit": self.against.unit, "edges": self.against.edges.tolist()},
            "counts": self.counts.astype(int).tolist(),
            "summary": summary(self.counts.sum(axis=0), self.limit),
        }


def summary(counts: Float64Array, limit: float) -> dict[str, float | None]:
    """Entries, median and half-width of the central 68.27 % of residuals counted between -limit and limit.

    The error of the width is that of a normal distribution, width / sqrt(2 n). Without entries they are None.
    """
    n = float(counts.sum())
    if n == 0:
        return {"entries": 0, "median": None, "width": None, "width_error": None}
    edges = np.linspace(-limit, limit, len(counts) + 1)
    cumulative = np.concatenate([[0.0], np.cumsum(counts)]) / n
    low, median, high = np.interp([(1 - CENTRAL_68) / 2, 0.5, (1 + CENTRAL_68) / 2], cumulative, edges)
    width = (high - low) / 2
    return {
        "entries": n,
        "median": float(median),
        "width": float(width),
        "width_error": float(width / np.sqrt(2 * n)),
    }
