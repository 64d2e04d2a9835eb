"""Rates of lines on a sample of bunch crossings: single, exclusive and common rates, and the kept bytes.

An event of the sample stands for one crossing of the given rate. If the sample excludes crossings without collision,
the rate must exclude them too. Errors are Wilson score intervals of 68.3 %.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.statistics import wilson_interval
from hltnode.processing.selection.evaluation.lines import Bools
from hltnode.processing.selection.studies.scans import Scan
from hltnode.protocol.raw_data.bank_types import TYPES_OF_TRIGGER
from hltnode.protocol.raw_data.raw_bank import HEADER_SIZE, RawBank

CROSSING_RATE = 30e6
"""Highest rate of crossings of two filled bunches at an LHC experiment, in Hz."""

_ALIGNMENT = 4

Counts = NDArray[np.int64]
Bytes = NDArray[np.int64]


def size_of(banks: Sequence[RawBank], truth_types: Set[int] = frozenset()) -> int:
    """Bytes of the raw banks of an event, headers and padding included, truth and trigger reports excluded."""
    left_out = TYPES_OF_TRIGGER | truth_types
    sizes = (HEADER_SIZE + len(bank.payload) for bank in banks if bank.type not in left_out)
    return sum(-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes)


@dataclass(slots=True)
class ScanCounts:
    """Events of each value of a scan, i64[values]: of the line, of all lines, of only this line; bytes of all lines."""

    scan: Scan
    line: Counts = field(init=False)
    total: Counts = field(init=False)
    exclusive: Counts = field(init=False)
    total_bytes: Bytes = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.scan.values)
        self.line, self.total, self.exclusive, self.total_bytes = (np.zeros(n, np.int64) for _ in range(4))


class RateCounts:
    """Sums over the events of a sample, added a batch at a time.

    truth_types: bank types of the simulation's truth, which do not count as bytes of an event.
    """

    def __init__(
        self, names: Sequence[str], scans: Sequence[Scan] = (), *, truth_types: Set[int] = frozenset()
    ) -> None:
        n = len(names)
        self.names = tuple(names)
        self._truth_types = truth_types
        self.events = 0
        self.accepted = 0
        self.accepted_bytes = 0
        self.overlap: Counts = np.zeros((n, n), np.int64)
        """Events that two lines both select; the diagonal holds the events of one line."""
        self.exclusive: Counts = np.zeros(n, np.int64)
        self.bytes: Bytes = np.zeros(n, np.int64)
        """Bytes of the events that each line selects."""
        self.scans = [ScanCounts(scan) for scan in scans]

    def add(self, banks: Sequence[Sequence[RawBank]], fired: Bools, varied: Sequence[Bools] = ()) -> None:
        """Count events. fired: bool[events, lines]; varied: bool[events, values] of each scan."""
        of_scans = [counts.scan.replaced(fired, of_scan) for counts, of_scan in zip(self.scans, varied, strict=True)]
        kept = fired.any(axis=1)
        # Measure only events that some line keeps.
        measured = np.flatnonzero(np.any([kept, *(of_scan.total.any(axis=1) for of_scan in of_scans)], axis=0))
        size = np.zeros(len(banks), np.int64)
        size[measured] = [size_of(banks[event], self._truth_types) for event in measured.tolist()]
        as_numbers = fired.astype(np.int64)
        self.events += len(banks)
        self.accepted += int(kept.sum())
        self.accepted_bytes += int(size[kept].sum())
        self.overlap += as_numbers.T @ as_numbers
        self.exclusive += fired[fired.sum(axis=1) == 1].sum(axis=0)
        self.bytes += size @ as_numbers
        for counts, of_scan in zip(self.scans, of_scans, strict=True):
            counts.line += of_scan.line.sum(axis=0)
            counts.total += of_scan.total.sum(axis=0)
            counts.exclusive += of_scan.exclusive.sum(axis=0)
            counts.total_bytes += size @ of_scan.total.astype(np.int64)

    def add_counts(self, other: "RateCounts") -> None:
        """Add the counts of another object with the same lines; both without scans."""
        assert self.names == other.names
        assert not self.scans
        assert not other.scans
        self.events += other.events
        self.accepted += other.accepted
        self.accepted_bytes += other.accepted_bytes
        self.overlap += other.overlap
        self.exclusive += other.exclusive
        self.bytes += other.bytes

    def result(self, crossing_rate: float = CROSSING_RATE) -> dict[str, Any]:
        """The JSON object of `hltnode rates`; rates in Hz. Raises ValueError without events.

        "error_hz" is half of the interval from "low_hz" to "high_hz"; the rate is not in its middle.
        """
        if not self.events:
            raise ValueError("rates need at least one event")
        own = self.overlap.diagonal()
        per_event = crossing_rate / self.events
        lines = {}
        for i, name in enumerate(self.names):
            lines[name] = {
                **self._rate("", own[i], crossing_rate),
                **self._rate("exclusive_", self.exclusive[i], crossing_rate),
                "bytes_per_second": float(self.bytes[i]) * per_event,
            }
        return {
            "events": self.events,
            "crossing_rate_hz": crossing_rate,
            "lines": lines,
            "total": {
                **self._rate("", self.accepted, crossing_rate),
                "bytes_per_second": self.accepted_bytes * per_event,
                "bytes_per_event": self.accepted_bytes / self.accepted if self.accepted else None,
            },
            "overlap": {"lines": list(self.names), "events": self.overlap.tolist()},
            "scans": [self._scan(counts, crossing_rate) for counts in self.scans],
        }

    def _rate(self, prefix: str, passed: int, crossing_rate: float) -> dict[str, float | int]:
        low, high = (crossing_rate * float(end) for end in wilson_interval(passed, self.events))
        return {
            f"{prefix}events": int(passed),
            f"{prefix}hz" if prefix else "rate_hz": crossing_rate * int(passed) / self.events,
            f"{prefix}error_hz": (high - low) / 2,
            f"{prefix}low_hz": low,
            f"{prefix}high_hz": high,
        }

    def _scan(self, counts: ScanCounts, crossing_rate: float) -> dict[str, Any]:
        scan = counts.scan
        points = [
            {
                "value": value,
                "line": self._rate("", counts.line[i], crossing_rate),
                "exclusive": self._rate("", counts.exclusive[i], crossing_rate),
                "total": {
                    **self._rate("", counts.total[i], crossing_rate),
                    "bytes_per_second": float(counts.total_bytes[i]) * crossing_rate / self.events,
                },
            }
            for i, value in enumerate(scan.values)
        ]
        return {"line": scan.line, "cut": scan.cut, "unit": scan.unit, "points": points}
