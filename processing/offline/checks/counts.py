"""Counts of categories of particles, and sums in bins of a variable.

All rates are fractions between 0 and 1; the rate of an empty category is None.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hltnode.processing.framework.statistics import wilson_interval
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.checks.binning import Binning


def ratio(part: float, whole: float) -> float | None:
    """part / whole, None if whole is 0."""
    return part / whole if whole else None


@dataclass(slots=True)
class CategoryCounts:
    """Counts of one category of particles, summed over events.

    `clones` are further tracks of a particle after its first; `purities` and `hit_efficiencies` are sums over all
    matched tracks, clones included; `event_efficiencies` over the `events` that have a particle of the category.
    """

    reconstructible: int = 0
    reconstructed: int = 0
    clones: int = 0
    purities: float = 0.0
    hit_efficiencies: float = 0.0
    events: int = 0
    event_efficiencies: float = 0.0

    @property
    def tracks(self) -> int:
        return self.reconstructed + self.clones

    @property
    def efficiency(self) -> float | None:
        return ratio(self.reconstructed, self.reconstructible)

    @property
    def efficiency_per_event(self) -> float | None:
        return ratio(self.event_efficiencies, self.events)

    @property
    def clone_rate(self) -> float | None:
        return ratio(self.clones, self.tracks)

    @property
    def hit_purity(self) -> float | None:
        return ratio(self.purities, self.tracks)

    @property
    def hit_efficiency(self) -> float | None:
        return ratio(self.hit_efficiencies, self.tracks)

    def result(self) -> dict[str, Any]:
        """The JSON object of the category."""
        return {
            "reconstructible": self.reconstructible,
            "reconstructed": self.reconstructed,
            "efficiency": self.efficiency,
            "clone_rate": self.clone_rate,
            "hit_purity": self.hit_purity,
            "hit_efficiency": self.hit_efficiency,
        }

    def line(self) -> dict[str, Any]:
        """The JSON object of the category's line in the text report, with the 68.3 % interval of the efficiency."""
        low, high = wilson_interval(self.reconstructed, self.reconstructible)
        return self.result() | {
            "efficiency_interval": [float(low), float(high)] if self.reconstructible else None,
            "efficiency_per_event": self.efficiency_per_event,
            "clones": self.clones,
        }


@dataclass(slots=True)
class BinnedCounts:
    """Sums per bin of one variable, by name."""

    binning: Binning
    sums: dict[str, Float64Array] = field(default_factory=dict)

    def add(self, name: str, bins: Int64Array, weights: Float64Array | None = None) -> None:
        self.sums[name] = self.sums.get(name, np.zeros(len(self.binning))) + self.binning.count(bins, weights)

    def result(self) -> dict[str, Any]:
        """The JSON object: edges in the given unit, and the sums."""
        sums = {name: values.tolist() for name, values in self.sums.items()}
        return {"unit": self.binning.unit, "edges": self.binning.edges.tolist(), **sums}
