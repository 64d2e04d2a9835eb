"""Enriched minimum bias: events of rare kinds are drawn more often, and each event has the weight that corrects it.

The particles of a crossing are independent of each other once its collisions are known: prompt particles and decaying
ones are Poisson processes. A kind of enriched events has `n` more particles of one process than a plain event, drawn
from a harder spectrum. If g(x) is the density of these relative to all particles of the process, L their mean number in
the crossing and x the particles of an event, then such events are sum g(x) / L times as frequent as in minimum bias (n
= 1), or the sum over ordered pairs of g(x) g(y) / L² (n = 2): the formula of Slivnyak and Mecke for Poisson processes
(Last and Penrose, Lectures on the Poisson Process, section 4.1). Events of a mixture with shares a_k then have the
weight 1 / sum a_k r_k with these relative frequencies r_k. Its mean is 1, and it is at most 1 / share of plain events.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask

PROMPT, PLAIN = -1, -2
"""The process of the charged particles straight from collisions, and that of events without added particles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harder:
    """The spectrum of added particles, relative to that of all: factors of the median of pt, of the mean flight
    distance; a range of pseudorapidity. pid: of added prompt particles, 0 for any. alone: added particles decay into
    two charged ones alone."""

    pt: float = 1.0
    flight: float = 1.0
    eta: tuple[float, float] = (1.7, 5.2)
    pid: int = 0
    alone: bool = False

    def pt_ratio(self, pt: Float64Array, median: float | Float64Array, spread: float) -> Float64Array:
        """Density of log-normal pt relative to the one with this median and the spread of its logarithm."""
        shift = np.log(self.pt)
        ratio: Float64Array = np.exp(shift * (np.log(pt / median) - shift / 2) / spread**2)
        return ratio

    def flight_ratio(self, flown: Float64Array) -> Float64Array:
        """Density of exponential distances relative to the one with mean 1."""
        ratio: Float64Array = np.exp(flown * (1 - 1 / self.flight)) / self.flight
        return ratio

    def eta_range(self, grid: Float64Array, cumulative: Float64Array) -> tuple[float, float]:
        """The range of pseudorapidity as numbers from 0 to 1 of a cumulative distribution."""
        low, high = np.interp(self.eta, grid, cumulative).tolist()
        return low, high


@dataclass(frozen=True, slots=True, eq=False)
class AddedRows:
    """The spectrum of each row of a process: that of all particles, or that of the added ones of its event's kind.

    is_added bool[n]; pt, flight f64[n]: factors; pid i64[n]; alone bool[n].
    """

    is_added: Mask
    pt: Float64Array
    flight: Float64Array
    pid: Int64Array
    alone: Mask
    _spectra: Sequence[Harder]
    _kind: Int64Array

    @classmethod
    def of(cls, is_added: Mask, spectra: Sequence[Harder], kind: Int64Array) -> Self:
        """Rows of events of kinds with these spectra; kind: of the event of each row."""
        pt, flight, pid, alone = (
            np.array([getattr(one, name) for one in spectra])[kind] for name in ("pt", "flight", "pid", "alone")
        )
        return cls(
            is_added,
            np.where(is_added, pt, 1.0),
            np.where(is_added, flight, 1.0),
            np.where(is_added, pid, 0),
            alone & is_added,
            spectra,
            kind,
        )

    def eta_range(self, grid: Float64Array, cumulative: Float64Array) -> tuple[Float64Array, Float64Array]:
        """The range of pseudorapidity of each row as numbers from 0 to 1 of a cumulative distribution."""
        low, high = np.array([one.eta_range(grid, cumulative) for one in self._spectra])[self._kind].T
        return np.where(self.is_added, low, 0.0), np.where(self.is_added, high, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of events of the mixture: its share; the process of the `n` added particles, a place in the table of
    decays, PROMPT or PLAIN; their spectrum. busy: factor of the mean number of collisions instead."""

    share: float
    process: int = PLAIN
    n: int = 0
    spectrum: Harder = Harder()
    busy: float = 1.0


class Mixture:
    """Kinds of events with shares that add up to 1."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.kinds = tuple(kinds)
        assert abs(sum(kind.share for kind in kinds) - 1) < 1e-9
        self._ends = np.cumsum([kind.share for kind in kinds])[:-1]

    def chosen(self, uniform: Float64Array) -> Int64Array:
        """The kind of each event, by numbers from 0 to 1."""
        return np.searchsorted(self._ends, uniform, side="right").astype(np.int64)

    def weights(self, frequencies: Float64Array) -> Float64Array:
        """The weights of events from the relative frequency f64[kinds, events] of each kind of events."""
        shares = np.array([kind.share for kind in self.kinds])
        weights: Float64Array = 1.0 / (shares @ frequencies)
        return weights


def added_frequency(n: int, event: Int64Array, ratio: Float64Array, mean: Float64Array) -> Float64Array:
    """How much more often events f64[n_events] have these particles if `n` (1 or 2) are added.

    event, ratio: of each particle of the process, its event and the relative density of added ones. mean: number of
    particles of the process in each event; where it is 0 none can be added, and nothing changes.
    """
    n_events = len(mean)
    total = np.bincount(event, ratio, minlength=n_events)
    if n == 2:
        total = np.maximum(total**2 - np.bincount(event, ratio**2, minlength=n_events), 0.0)
    return np.where(mean > 0, total / np.where(mean > 0, mean, 1.0) ** n, 1.0)


def places_to_add(source: Int64Array, n_added: Int64Array) -> Mask:
    """Marks the last n_added[i] rows of each source i; `source` rises."""
    counts = np.bincount(source, minlength=len(n_added))
    from_end = np.repeat(np.cumsum(counts), counts) - np.arange(len(source))
    marked: Mask = from_end <= n_added[source]
    return marked
