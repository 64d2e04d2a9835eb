"""Which simulated muons have a candidate, and how many windows are background."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.km3net.hits.collections import Trigger

HIT_BINS = np.array([1, 5, 7, 9, 12, 16, 24, 85])
"""Hits of a muon; the last edge stands for all larger numbers."""
SHIFT = 8_000
"""ns by which true muons are shifted to count candidates that meet them by accident; no muon reaches as far."""
_TRIGGERS = {each.name.removeprefix("TRIGGER_").lower(): int(each) for each in Trigger if each.name is not None}


@dataclass(frozen=True, slots=True)
class SliceContent:
    """Truth and results of a time slice. Times in ns since the start of the slice.

    sub_slices: number without margins. length: ns. muons: i64[muons, 3], first and last hit, number of hits, for muons
    that begin in no margin. candidates: i64[candidates, 2], time and triggers. windows: i64[windows, 3], start, end,
    triggers.
    """

    sub_slices: int
    length: int
    muons: NDArray[np.int64]
    candidates: NDArray[np.int64]
    windows: NDArray[np.int64]


def meets(first: NDArray[np.int64], last: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]) -> Any:
    """bool[n]: whether an interval `begin` <= t < `end` has a time between `first` and `last`, both included."""
    if not len(begin):
        return np.zeros(len(first), bool)
    return ((begin <= last[:, None]) & (end > first[:, None])).any(1)


@dataclass(slots=True)
class MuonChecker:
    """Counts over time slices. time_window: ns from the first hit of a candidate on that belong to it."""

    time_window: int
    slices: int = 0
    sub_slices: int = 0
    live_ns: int = 0
    muons: int = 0
    found: int = 0
    accidental: int = 0
    crossing: int = 0
    crossing_found: int = 0
    windows: int = 0
    background: int = 0
    of_hits: NDArray[np.int64] = field(default_factory=lambda: np.zeros((len(HIT_BINS) - 1, 2), np.int64))
    of_triggers: NDArray[np.int64] = field(default_factory=lambda: np.zeros((len(_TRIGGERS), 2), np.int64))

    def add(self, content: SliceContent) -> None:
        """Count a slice."""
        first, last, hits = content.muons.T
        begin, triggers = content.candidates.T
        end = begin + self.time_window
        found = meets(first, last, begin, end)
        self.slices += 1
        self.sub_slices += content.sub_slices
        self.live_ns += content.sub_slices * content.length
        self.muons += len(first)
        self.found += int(found.sum())
        self.accidental += int(meets(first + SHIFT, last + SHIFT, begin, end).sum())
        crosses = first // content.length != last // content.length
        self.crossing += int(crosses.sum())
        self.crossing_found += int((crosses & found).sum())
        place = np.clip(np.searchsorted(HIT_BINS, hits, "right") - 1, 0, len(HIT_BINS) - 2)
        np.add.at(self.of_hits, place, np.column_stack([np.ones(len(hits), np.int64), found]))
        start, stop, bits = content.windows.T
        background = ~meets(start, stop - 1, first, last + 1)
        self.windows += len(start)
        self.background += int(background.sum())
        for i, mask in enumerate(_TRIGGERS.values()):
            with_it = begin[(triggers & mask) != 0]
            self.of_triggers[i, 0] += int(meets(first, last, with_it, with_it + self.time_window).sum())
            self.of_triggers[i, 1] += int((background & ((bits & mask) != 0)).sum())

    def result(self) -> dict[str, Any]:
        """The JSON object. None where nothing was counted; errors are standard deviations."""
        seconds = self.live_ns * 1e-9
        return {
            "slices": self.slices,
            "sub_slices": self.sub_slices,
            "live_time_s": seconds,
            "muons": self.muons,
            **_fraction("efficiency", self.found, self.muons),
            **_fraction("accidental", self.accidental, self.muons),
            "found_at_borders": {"muons": self.crossing, "found": self.crossing_found},
            "windows": self.windows,
            **_rate("background_rate_hz", self.background, seconds),
            "of_hits": [
                {"from": low, "to": high, "muons": n, **_fraction("efficiency", found, n)}
                for low, high, (n, found) in zip(
                    HIT_BINS[:-1].tolist(), HIT_BINS[1:].tolist(), self.of_hits.tolist(), strict=True
                )
            ],
            "of_triggers": {
                name: {
                    **_fraction("efficiency", of_muons, self.muons),
                    **_rate("background_rate_hz", of_background, seconds),
                }
                for name, (of_muons, of_background) in zip(_TRIGGERS, self.of_triggers.tolist(), strict=True)
            },
        }


def _fraction(name: str, n: int, of: int) -> dict[str, float | None]:
    if not of:
        return {name: None, f"{name}_error": None}
    value = n / of
    return {name: value, f"{name}_error": (value * (1.0 - value) / of) ** 0.5}


def _rate(name: str, n: int, seconds: float) -> dict[str, float | None]:
    if not seconds:
        return {name: None, f"{name}_error": None}
    return {name: n / seconds, f"{name}_error": n**0.5 / seconds}
