"""Rates of lines on a sample of events: single, exclusive and common rates, and the kept bytes.

An event of the sample stands for one event of the given rate, such as a bunch crossing, or for as many as its weight
says. If the sample excludes crossings without collision, the rate must exclude them too. Errors are intervals of 68.3 %
(framework.statistics.fraction).
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.readout import Readout
from hltnode.processing.framework.statistics import WeightSums, fraction
from hltnode.processing.selection.evaluation.lines import Bools
from hltnode.processing.selection.event_rate import EventRate
from hltnode.processing.selection.studies.sample_truth import SampleKinds
from hltnode.processing.selection.studies.scans import Scan
from hltnode.protocol.event_table import EventTable, type_table
from hltnode.protocol.raw_data.bank_types import TYPES_OF_TRIGGER
from hltnode.protocol.raw_data.raw_bank import HEADER_SIZE

_ALIGNMENT = 4

Sums = NDArray[np.float64]


def sizes_of(events: EventTable, truth_types: Set[int] = frozenset()) -> Sums:
    """f64[events]: bytes of the raw banks, headers and padding included, truth and trigger reports excluded."""
    event, rows = events.banks()
    sizes = -(-(HEADER_SIZE + rows["size"].astype(np.int64)) // _ALIGNMENT) * _ALIGNMENT
    sizes[type_table(TYPES_OF_TRIGGER | truth_types)[rows["type"]]] = 0
    return np.bincount(event, weights=sizes, minlength=len(events)).astype(np.float64)


@dataclass(slots=True)
class PassedEvents:
    """Sums over the events that pass, one element for each selection: number, weights, squared weights."""

    events: NDArray[np.int64]
    weights: Sums
    squares: Sums

    @classmethod
    def none(cls, n: int) -> Self:
        """The sums of n selections that no event passed."""
        return cls(np.zeros(n, np.int64), np.zeros(n), np.zeros(n))

    def add(self, passed: Bools, weights: Sums) -> None:
        """Add events; passed: bool[events, selections], weights: f64[events]."""
        self.events += passed.sum(axis=0)
        self.weights += weights @ passed
        self.squares += weights**2 @ passed

    def add_sums(self, other: Self) -> None:
        """Add the sums of other events."""
        self.events += other.events
        self.weights += other.weights
        self.squares += other.squares


@dataclass(slots=True)
class ScanCounts:
    """Events of each value of a scan: of the line, of all lines, of only this line; bytes of all lines."""

    scan: Scan
    line: PassedEvents = field(init=False)
    total: PassedEvents = field(init=False)
    exclusive: PassedEvents = field(init=False)
    total_bytes: Sums = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.scan.values)
        self.line, self.total, self.exclusive = (PassedEvents.none(n) for _ in range(3))
        self.total_bytes = np.zeros(n)


class RateCounts:
    """Sums over the events of a sample, added a batch at a time.

    readout: that of the chain, which reads kinds and weights of simulated events; without it all events count once. Its
    truth banks do not count as bytes of an event. prefilters: names of the prefilters whose events `add` gets. Sums of
    weights depend on the order of events in the last bit.
    """

    def __init__(
        self,
        names: Sequence[str],
        scans: Sequence[Scan] = (),
        *,
        readout: Readout | None = None,
        prefilters: Sequence[str] = (),
    ) -> None:
        n = len(names)
        self.names = tuple(names)
        self._readout = readout
        self._truth_types = frozenset[int]() if readout is None else readout.truth_types
        self.kinds = SampleKinds()
        self.sums = WeightSums()
        self.lines = PassedEvents.none(n)
        self.exclusive = PassedEvents.none(n)
        self.total = PassedEvents.none(1)
        self.total_bytes = 0.0
        self.overlap: NDArray[np.int64] = np.zeros((n, n), np.int64)
        """Events that two lines both select; the diagonal holds the events of one line."""
        self.overlap_weights: Sums = np.zeros((n, n))
        self.bytes: Sums = np.zeros(n)
        """Weighted bytes of the events that each line selects."""
        self.scans = [ScanCounts(scan) for scan in scans]
        self.prefilters = tuple(prefilters)
        self.passed = PassedEvents.none(len(prefilters))

    @property
    def events(self) -> int:
        """Number of events so far."""
        return self.sums.events

    def add(self, events: EventTable, fired: Bools, varied: Sequence[Bools] = (), passed: Bools | None = None) -> None:
        """Count events.

        fired: bool[events, lines]; varied: bool[events, values] of each scan; passed: bool[events, prefilters].
        """
        of_scans = [counts.scan.replaced(fired, of_scan) for counts, of_scan in zip(self.scans, varied, strict=True)]
        weights = self.kinds.add(events, self._readout)
        kept: NDArray[np.bool_] = np.asarray(fired.any(axis=1))
        # Measure only events that some line keeps.
        measured = np.flatnonzero(np.any([kept, *(of_scan.total.any(axis=1) for of_scan in of_scans)], axis=0))
        size = np.zeros(len(events))
        size[measured] = sizes_of(events.select(measured), self._truth_types)
        size *= weights
        as_numbers = fired.astype(np.float64)
        self.sums += WeightSums.of(weights)
        self.lines.add(fired, weights)
        if passed is not None:
            self.passed.add(passed, weights)
        alone: NDArray[np.bool_] = fired.sum(axis=1, keepdims=True) == 1
        self.exclusive.add(fired & alone, weights)
        self.total.add(kept[:, None], weights)
        self.total_bytes += float(size[kept].sum())
        self.overlap += (as_numbers.T @ as_numbers).astype(np.int64)
        self.overlap_weights += (as_numbers.T * weights) @ as_numbers
        self.bytes += size @ as_numbers
        for counts, of_scan in zip(self.scans, of_scans, strict=True):
            counts.line.add(of_scan.line, weights)
            counts.total.add(of_scan.total, weights)
            counts.exclusive.add(of_scan.exclusive, weights)
            counts.total_bytes += size @ of_scan.total

    def add_counts(self, other: "RateCounts") -> None:
        """Add the counts of another object with the same lines; both without scans."""
        assert (self.names, self.prefilters) == (other.names, other.prefilters)
        assert not self.scans
        assert not other.scans
        self.kinds.add_kinds(other.kinds)
        self.sums += other.sums
        self.lines.add_sums(other.lines)
        self.exclusive.add_sums(other.exclusive)
        self.total.add_sums(other.total)
        self.total_bytes += other.total_bytes
        self.overlap += other.overlap
        self.overlap_weights += other.overlap_weights
        self.bytes += other.bytes
        self.passed.add_sums(other.passed)

    def result(self, rate: EventRate) -> dict[str, Any]:
        """The JSON object of `hltnode rates`; rates in Hz. Raises ValueError without events.

        rate: of the events for which those of the sample stand; "crossing_rate_hz" and "event" of the result.
        "error_hz" is half of the interval from "low_hz" to "high_hz"; the rate is not in its middle.
        "events_for_10_percent" is the least number where no event passed.
        """
        if not self.events:
            raise ValueError("rates need at least one event")
        crossing_rate = rate.hz
        per_weight = crossing_rate / self.sums.weights
        lines = {}
        for i, name in enumerate(self.names):
            lines[name] = {
                **self._rate("", self.lines, i, crossing_rate),
                **self._rate("exclusive_", self.exclusive, i, crossing_rate),
                "bytes_per_second": float(self.bytes[i]) * per_weight,
            }
        accepted = float(self.total.weights[0])
        return {
            "events": self.events,
            "crossing_rate_hz": crossing_rate,
            "event": rate.event,
            "sample": self.kinds.result(self.sums) | {"largest_event_hz": self.sums.largest * per_weight},
            "lines": lines,
            **self._of_prefilters(crossing_rate),
            "total": {
                **self._rate("", self.total, 0, crossing_rate),
                "bytes_per_second": self.total_bytes * per_weight,
                "bytes_per_event": self.total_bytes / accepted if accepted else None,
            },
            "overlap": {
                "lines": list(self.names),
                "events": self.overlap.tolist(),
                "weights": self.overlap_weights.tolist(),
            },
            "scans": [self._scan(counts, crossing_rate) for counts in self.scans],
        }

    def _of_prefilters(self, crossing_rate: float) -> dict[str, Any]:
        """The events that pass each prefilter; nothing for a configuration without prefilters."""
        passed = {name: self._rate("", self.passed, i, crossing_rate) for i, name in enumerate(self.prefilters)}
        return {"prefilters": passed} if passed else {}

    def _rate(self, prefix: str, passed: PassedEvents, place: int, crossing_rate: float) -> dict[str, float | int]:
        weights, squares = float(passed.weights[place]), float(passed.squares[place])
        found = fraction(weights, squares, self.sums)
        low, high = crossing_rate * found.low, crossing_rate * found.high
        return {
            f"{prefix}events": int(passed.events[place]),
            f"{prefix}effective_events": weights**2 / squares if squares else 0.0,
            f"{prefix}hz" if prefix else "rate_hz": crossing_rate * weights / self.sums.weights,
            f"{prefix}error_hz": (high - low) / 2,
            f"{prefix}low_hz": low,
            f"{prefix}high_hz": high,
            f"{prefix}events_for_10_percent": round(found.events_needed),
        }

    def _scan(self, counts: ScanCounts, crossing_rate: float) -> dict[str, Any]:
        scan = counts.scan
        points = [
            {
                "value": value,
                "line": self._rate("", counts.line, i, crossing_rate),
                "exclusive": self._rate("", counts.exclusive, i, crossing_rate),
                "total": {
                    **self._rate("", counts.total, i, crossing_rate),
                    "bytes_per_second": float(counts.total_bytes[i]) * crossing_rate / self.sums.weights,
                },
            }
            for i, value in enumerate(scan.values)
        ]
        return {"line": scan.line, "cut": scan.cut, "unit": scan.unit, "points": points}
