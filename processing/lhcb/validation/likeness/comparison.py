"""Comparison of two samples: means, ratios of means, Kolmogorov distances."""

from dataclasses import dataclass
from typing import Any

from hltnode.processing.lhcb.validation.likeness.distribution import (
    Distribution,
    Quantity,
    distance_by_chance,
    kolmogorov_distance,
)
from hltnode.processing.lhcb.validation.likeness.quantities import QUANTITIES
from hltnode.processing.lhcb.validation.likeness.sample import SampleSummary

MAX_DIFFERENCE = 0.15
"""Means that should be equal and differ by more than this fraction are listed."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One quantity in both samples; None where a sample does not have it."""

    quantity: Quantity
    real: Distribution | None
    simulated: Distribution | None

    @property
    def ratio(self) -> float | None:
        """Mean of the simulated sample / mean of the real one; None if their means need not be equal."""
        if not self.quantity.means_alike or self.real is None or self.simulated is None:
            return None
        real, simulated = self.real.mean, self.simulated.mean
        return simulated / real if real and simulated is not None else None

    @property
    def differs(self) -> bool:
        return self.ratio is not None and abs(self.ratio - 1) > MAX_DIFFERENCE

    @property
    def distance(self) -> float | None:
        """The Kolmogorov distance."""
        if self.real is None or self.simulated is None:
            return None
        return kolmogorov_distance(self.real.counts, self.simulated.counts)

    @property
    def chance(self) -> float | None:
        """The average distance of two samples of the same distribution."""
        if self.real is None or self.simulated is None:
            return None
        return distance_by_chance(self.real.counts, self.simulated.counts)

    def result(self) -> dict[str, Any]:
        """The JSON object of the quantity."""
        return {
            "detector": self.quantity.detector,
            "title": self.quantity.title,
            "per": self.quantity.per,
            "unit": self.quantity.unit,
            **_of_sample("real", self.real),
            **_of_sample("simulated", self.simulated),
            "ratio": self.ratio,
            "differs": self.differs,
            "kolmogorov_distance": self.distance,
            "kolmogorov_distance_by_chance": self.chance,
        }


def _of_sample(name: str, distribution: Distribution | None) -> dict[str, Any]:
    if distribution is None:
        return {f"{name}_entries": 0, f"{name}_mean": None, f"{name}_mean_error": None, f"{name}_width": None}
    return {
        f"{name}_entries": distribution.entries,
        f"{name}_mean": distribution.mean,
        f"{name}_mean_error": distribution.mean_error,
        f"{name}_width": distribution.width,
    }


def compare(real: SampleSummary, simulated: SampleSummary) -> list[Compared]:
    """Every quantity that a sample has, in the order of the report."""
    pairs = (
        Compared(quantity, real.distributions.get(name), simulated.distributions.get(name))
        for name, quantity in QUANTITIES.items()
    )
    return [pair for pair in pairs if pair.real is not None or pair.simulated is not None]


def comparison_result(real: SampleSummary, simulated: SampleSummary) -> dict[str, Any]:
    """The JSON object of `hltnode compare`, without the names of the files."""
    compared = compare(real, simulated)
    return {
        "real_events": real.events,
        "simulated_events": simulated.events,
        "differ": [pair.quantity.name for pair in compared if pair.differs],
        "missing": [pair.quantity.name for pair in compared if pair.real is None or pair.simulated is None],
        "quantities": {pair.quantity.name: pair.result() for pair in compared},
        "truth_left_out": {"real": real.faults.result(), "simulated": simulated.faults.result()},
    }
