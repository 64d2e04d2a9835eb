"""The last hour of a node in samples of ten seconds: 10 kB, without a database (no I/O, no clock)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.monitoring.counters import Counters

PERIOD_NS = 10_000_000_000
SAMPLES = 360
"""One hour."""
QUANTITIES = ("events_per_s", "accepted_per_s", "dead_time", "latency_s")
"""Columns of a sample: rates, fraction of dead time, and the mean time from the close of a MEP until its decision is
sent (NaN: no decision was sent)."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples in order of time.

    ends: monotonic time of the end of each (ns, i64[n]); values: f32[n, 4], as `QUANTITIES`.
    """

    ends: NDArray[np.int64]
    values: NDArray[np.float32]


class LastHour:
    """Samples the counters every ten seconds; the newest sample replaces the oldest one.

    All calls come from the event loop. Times are monotonic nanoseconds.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._ends = np.zeros(SAMPLES, np.int64)
        self._values = np.zeros((SAMPLES, len(QUANTITIES)), np.float32)
        self._n = 0
        """Number of samples since the start."""
        self._since_ns: int | None = None
        self._before: tuple[float, ...] = ()

    def note(self, now_ns: int) -> None:
        """Take a sample if one is due; call this at every tick."""
        if self._since_ns is not None and now_ns - self._since_ns < PERIOD_NS:
            return
        now = self._sums()
        if self._since_ns is not None:
            seconds = (now_ns - self._since_ns) * 1e-9
            events, accepted, dead, latency, decided = (a - b for a, b in zip(now, self._before, strict=True))
            place = self._n % SAMPLES
            self._ends[place] = now_ns
            self._values[place] = (
                events / seconds,
                accepted / seconds,
                # A reason that has just begun is counted at its end, in a later sample.
                min(1.0, max(0.0, dead / seconds)),
                latency / decided if decided else np.nan,
            )
            self._n += 1
        self._since_ns, self._before = now_ns, now

    def _sums(self) -> tuple[float, ...]:
        counters = self._counters
        return (
            counters.events_processed,
            counters.events_accepted,
            sum(counters.dead_time.values()),
            counters.end_to_end.total,
            sum(counters.end_to_end.counts),
        )

    def latest_latency(self) -> float | None:
        """The latency of the newest sample (s); None without one, or if it sent no decision."""
        latest = float(self._values[(self._n - 1) % SAMPLES, -1]) if self._n else np.nan
        return None if np.isnan(latest) else latest

    def samples(self) -> Samples:
        """A copy of the samples."""
        order = np.arange(max(0, self._n - SAMPLES), self._n) % SAMPLES
        return Samples(self._ends[order], self._values[order])


def as_columns(samples: Samples, now_ns: int, now_s: float) -> Mapping[str, Any]:
    """The samples as JSON: a list for each quantity, None where it has no value, and the Unix time of their ends."""
    columns: dict[str, Any] = {"time": [round(now_s - (now_ns - end) * 1e-9, 1) for end in samples.ends.tolist()]}
    for name, values in zip(QUANTITIES, samples.values.T.tolist(), strict=True):
        columns[name] = [None if value != value else float(f"{value:.5g}") for value in values]
    return columns
