"""Comparison of two samples: means, widths and medians, their ratios and differences, Kolmogorov distances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hltnode.processing.offline.likeness.distribution import (
    Distribution,
    Quantity,
    Statistic,
    distance_by_chance,
    kolmogorov_distance,
)
from hltnode.processing.offline.truth_faults import TruthFaults
from hltnode.processing.selection.studies.row_choice import RowChoice

MAX_DIFFERENCE = 0.15
"""Means that should be equal and differ by more than this fraction are listed."""

TRACKING_DIFFERENCE, TRACKING_MEDIAN, TRACKING_ERRORS = 0.10, 0.5, 2.0
"""A quantity that the tracking depends on is listed if it differs by more than this fraction and by more than this
number of standard errors. Medians are near 0, so they have a limit in their unit instead of the fraction."""


class Sample(Protocol):
    """The distributions of one sample of events.

    quantities: every quantity that can be compared, in the order of the report. distributions: those of the quantities
    that the sample has. faults: the events whose truth is left out.
    """

    @property
    def quantities(self) -> Mapping[str, Quantity]: ...

    events: int
    distributions: dict[str, Distribution]
    faults: TruthFaults


@dataclass(frozen=True, slots=True)
class Compared:
    """One quantity in both samples; None where a sample does not have it."""

    quantity: Quantity
    reference: Distribution | None
    other: Distribution | None

    @property
    def values(self) -> tuple[tuple[float, float | None], tuple[float, float | None]] | None:
        """The statistic and its standard error in the reference and in the other sample; None if a sample lacks it."""
        reference, other = (None if it is None else it.value() for it in (self.reference, self.other))
        return None if reference is None or other is None else (reference, other)

    @property
    def ratio(self) -> float | None:
        """Mean (or width) of the other sample / that of the reference; None if they need not be equal."""
        if self.values is None or self.quantity.statistic is Statistic.MEDIAN:
            return None
        (reference, _), (other, _) = self.values
        return other / reference if reference else None

    @property
    def errors_apart(self) -> float | None:
        """The difference of the other sample from the reference in standard errors; None if these are not known."""
        if self.values is None:
            return None
        (reference, reference_error), (other, other_error) = self.values
        if reference_error is None or other_error is None:
            return None
        error = float(np.hypot(reference_error, other_error))
        return (other - reference) / error if error else None

    @property
    def differs(self) -> bool:
        if not self.quantity.of_tracking:
            return self.ratio is not None and abs(self.ratio - 1) > MAX_DIFFERENCE
        if self.values is None or self.errors_apart is None or abs(self.errors_apart) <= TRACKING_ERRORS:
            return False
        if self.quantity.statistic is Statistic.MEDIAN:
            (reference, _), (other, _) = self.values
            return abs(other - reference) > TRACKING_MEDIAN
        return self.ratio is None or abs(self.ratio - 1) > TRACKING_DIFFERENCE

    @property
    def distance(self) -> float | None:
        """The Kolmogorov distance."""
        if self.reference is None or self.other is None:
            return None
        return kolmogorov_distance(self.reference.counts, self.other.counts)

    @property
    def chance(self) -> float | None:
        """The average distance of two samples of the same distribution."""
        if self.reference is None or self.other is None:
            return None
        return distance_by_chance(self.reference.counts, self.other.counts)

    def result(self) -> dict[str, Any]:
        """The JSON object of the quantity."""
        return {
            "detector": self.quantity.detector,
            "title": self.quantity.title,
            "per": self.quantity.per,
            "unit": self.quantity.unit,
            **_of_sample("reference", self.reference),
            **_of_sample("other", self.other),
            "statistic": self.quantity.statistic,
            "of_tracking": self.quantity.of_tracking,
            "ratio": self.ratio,
            "errors_apart": self.errors_apart,
            "differs": self.differs,
            "kolmogorov_distance": self.distance,
            "kolmogorov_distance_by_chance": self.chance,
        }


def _of_sample(name: str, distribution: Distribution | None) -> dict[str, Any]:
    if distribution is None:
        names = ("mean", "mean_error", "width", "value", "value_error")
        return {f"{name}_entries": 0, **{f"{name}_{of}": None for of in names}}
    value, error = distribution.value() or (None, None)
    return {
        f"{name}_entries": distribution.entries,
        f"{name}_mean": distribution.mean,
        f"{name}_mean_error": distribution.mean_error,
        f"{name}_width": distribution.width,
        f"{name}_value": value,
        f"{name}_value_error": error,
    }


def compare(reference: Sample, other: Sample) -> list[Compared]:
    """Every quantity that a sample has, in the order of the report."""
    pairs = (
        Compared(quantity, reference.distributions.get(name), other.distributions.get(name))
        for name, quantity in reference.quantities.items()
    )
    return [pair for pair in pairs if pair.reference is not None or pair.other is not None]


def chosen(compared: Sequence[Compared], rows: RowChoice) -> list[Compared]:
    """The chosen quantities, by their names; by rate: those with the largest difference of the means first."""
    # The order needs one number; the others tell a quantity without entries.
    pairs = {pair.quantity.name: pair for pair in compared}
    rates = {
        name: (0.0 if pair.ratio is None else abs(pair.ratio - 1), *(value for value, _ in pair.values or ()))
        for name, pair in pairs.items()
    }
    return [pairs[name] for name in rows.names(rates)]


def comparison_result(reference: Sample, other: Sample) -> dict[str, Any]:
    """The JSON object of `hltnode compare`, without the names of the files."""
    compared = compare(reference, other)
    return {
        "reference_events": reference.events,
        "other_events": other.events,
        "differ": [pair.quantity.name for pair in compared if pair.differs],
        "missing": [pair.quantity.name for pair in compared if pair.reference is None or pair.other is None],
        "quantities": {pair.quantity.name: pair.result() for pair in compared},
        "truth_left_out": {"reference": reference.faults.result(), "other": other.faults.result()},
    }
