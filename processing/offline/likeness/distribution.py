"""A quantity that is compared between samples, and its distribution in one of them."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.checks.binning import CENTRAL_68

# With fewer entries the error of the median is unknown.
_LEAST_FOR_ERROR = 8


class Statistic(StrEnum):
    """The number that should be equal in both samples."""

    MEAN = "mean"
    WIDTH = "width"
    MEDIAN = "median"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A counted quantity: `title` in `unit`, one entry per `per`, in `bins` equal bins from `low` to `high`.

    Each whole number has a bin that is centred on it. `statistic`: the number that should be equal in both samples,
    None if no number should. `of_tracking`: the tracking depends on the quantity, so differences are compared with
    their statistical errors. `occupancy`: the value is the place of a hit, and the figure shows hits per event, with
    `drawn_together` places in a bin and `place_names` as labels. `falls`: most entries are at the lower end, so the
    axis of entries is logarithmic.
    """

    name: str
    detector: str
    title: str
    per: str
    low: float
    high: float
    bins: int
    unit: str = ""
    statistic: Statistic | None = Statistic.MEAN
    of_tracking: bool = False
    occupancy: bool = False
    drawn_together: int = 1
    place_names: tuple[str, ...] = ()
    falls: bool = False

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers."""
        return self.low == -0.5

    @property
    def fraction(self) -> bool:
        """Whether the values are 0 and 1."""
        return self.whole and self.bins == 2

    @property
    def edges(self) -> Float64Array:
        return np.linspace(self.low, self.high, self.bins + 1)


class Distribution:
    """Counts of a quantity: `counts` f64[bins + 2], the first and last for values below and above all bins."""

    def __init__(self, quantity: Quantity) -> None:
        self.quantity = quantity
        self.counts: Float64Array = np.zeros(quantity.bins + 2)
        self.total = 0.0
        self.total_squares = 0.0

    def add(self, values: ArrayLike) -> None:
        """Count values; values that are not finite are left out."""
        given = np.atleast_1d(np.asarray(values, dtype=np.float64))
        given = given[np.isfinite(given)]
        it = self.quantity
        place = np.floor((given - it.low) / (it.high - it.low) * it.bins) + 1
        self.counts += np.bincount(np.clip(place, 0, it.bins + 1).astype(np.int64), minlength=it.bins + 2)
        self.total += float(given.sum())
        self.total_squares += float((given**2).sum())

    @property
    def entries(self) -> int:
        return int(self.counts.sum())

    @property
    def mean(self) -> float | None:
        return self.total / self.entries if self.entries else None

    @property
    def mean_error(self) -> float | None:
        """Standard error of the mean; None for fewer than two entries."""
        n = self.entries
        if n < 2:
            return None
        variance = max(self.total_squares / n - (self.total / n) ** 2, 0.0) * n / (n - 1)
        return float(np.sqrt(variance / n))

    @property
    def width(self) -> float | None:
        """Half of the central 68.3 %, from the bins; None without entries."""
        quantiles = self._quantiles((1 - CENTRAL_68) / 2, (1 + CENTRAL_68) / 2)
        return None if quantiles is None else (quantiles[1] - quantiles[0]) / 2

    @property
    def median(self) -> float | None:
        """The median, from the bins; None without entries."""
        quantiles = self._quantiles(0.5)
        return None if quantiles is None else quantiles[0]

    def _quantiles(self, *fractions: float) -> list[float] | None:
        it = self.quantity
        if not self.entries:
            return None
        # Entries outside all bins count as entries of the outermost ones.
        cumulative = np.concatenate([[0.0], np.cumsum(self.counts[1:-1]) + self.counts[0]]) / self.entries
        found: list[float] = np.interp(fractions, cumulative, it.edges).tolist()
        return found

    @property
    def _fraction_error(self) -> float | None:
        """Binomial error, with one more entry of either kind: entries that are all 0 would have no error."""
        n = self.entries
        likely = (self.total + 1) / (n + 2)
        return float(np.sqrt(likely * (1 - likely) / n)) if n else None

    def value(self) -> tuple[float, float | None] | None:
        """The statistic of the quantity and its standard error; None without entries or without a statistic.

        Errors of widths and medians are those of a normal distribution.
        """
        found: float | None
        match self.quantity.statistic:
            case Statistic.MEAN:
                found, error = self.mean, self._fraction_error if self.quantity.fraction else self.mean_error
            case Statistic.WIDTH:
                found = self.width
                error = None if found is None else 0.96 * found / np.sqrt(self.entries)
            case Statistic.MEDIAN:
                found, width = self.median, self.width
                few = self.entries < _LEAST_FOR_ERROR
                error = None if width is None or few else float(np.sqrt(np.pi / 2)) * width / np.sqrt(self.entries)
            case None:
                return None
        return None if found is None else (found, error)


def kolmogorov_distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """The two-sample Kolmogorov-Smirnov statistic of counts in the same bins; None if a sample is empty.

    The largest difference of the cumulative distributions at the edges of bins: exact for whole numbers, otherwise
    smaller than the true one by no more than the content of a bin.
    """
    if not one.sum() or not other.sum():
        return None
    return float(np.abs(np.cumsum(one) / one.sum() - np.cumsum(other) / other.sum()).max())


def distance_by_chance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """The mean Kolmogorov distance of two samples of one continuous distribution with as many entries; None if empty.

    0.869 sqrt(1/n + 1/m), the mean of Kolmogorov's distribution (large n and m; sqrt(pi/2) ln 2). Hits are correlated
    in clusters and tracks, so their distance is larger. The distance of whole numbers is smaller.
    """
    if not one.sum() or not other.sum():
        return None
    return float(np.sqrt(np.pi / 2) * np.log(2) * np.sqrt(1 / one.sum() + 1 / other.sum()))
