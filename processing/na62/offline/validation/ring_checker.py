"""Which true rings were found, and which rings are fakes."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_TRUE_HITS = 10
"""Photomultipliers that the light of a true ring must hit for it to count; of 20 photons, fewer than 10 are rare."""
MATCH_DISTANCE = 15.0
"""mm: a ring is a true one if the distance of centre and radius together, of three components, is smaller."""
DISTANCE_BINS = np.array([0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 130.0, 160.0, 200.0, 300.0])
"""mm between the centres of the two true rings of an event."""
NOISE_BINS = np.array([0, 1, 2, 4, 8, 16, 65])
"""Hits of an event beyond the light of its true rings."""


@dataclass(slots=True)
class RingChecker:
    """Counts over events, by the number of true rings that count.

    A true ring takes the nearest free ring within MATCH_DISTANCE, those with most light first. A ring that no true ring
    takes is a fake. All true rings take rings, but only those with MIN_TRUE_HITS count in efficiencies.
    """

    events: int = 0
    without_truth: int = 0
    fakes: int = 0
    of_number: Counter[int] = field(default_factory=Counter)
    all_found: Counter[int] = field(default_factory=Counter)
    fakes_of_number: Counter[int] = field(default_factory=Counter)
    of_distance: NDArray[np.int64] = field(default_factory=lambda: np.zeros((len(DISTANCE_BINS) - 1, 2), np.int64))
    of_noise: NDArray[np.int64] = field(default_factory=lambda: np.zeros((len(NOISE_BINS) - 1, 2), np.int64))
    residuals: list[tuple[float, float, float]] = field(default_factory=list)

    def add(self, true: NDArray[np.void] | None, found: NDArray[np.void], n_hits: int) -> None:
        """Count an event: TRUE_RING[true], records of x, y and radius of the found rings, hits of the event."""
        self.events += 1
        if true is None:
            self.without_truth += 1
            return
        true = true[np.argsort(-true["hits"].astype(np.int64), kind="stable")]
        counts = true["hits"] >= MIN_TRUE_HITS
        is_free = np.ones(len(found), bool)
        n_found = 0
        for ring, does_count in zip(true, counts, strict=True):
            differences = np.array([found[name] - ring[name] for name in ("x", "y", "radius")])
            distance = np.where(is_free, np.sqrt((differences**2).sum(0)), np.inf)
            if not len(distance) or not distance.min() < MATCH_DISTANCE:
                continue
            nearest = int(distance.argmin())
            is_free[nearest] = False
            n_found += int(does_count)
            dx, dy, dr = differences[:, nearest].tolist()
            self.residuals.append((dx, dy, dr))
        n = int(counts.sum())
        whole = n_found == n
        self.of_number[n] += 1
        self.all_found[n] += whole
        self.fakes += int(is_free.sum())
        self.fakes_of_number[n] += int(is_free.sum())
        if n == 2:
            first, second = true[counts]
            between = np.hypot(first["x"] - second["x"], first["y"] - second["y"])
            place = int(np.searchsorted(DISTANCE_BINS, between, "right")) - 1
            if place < len(self.of_distance):
                self.of_distance[place] += (1, whole)
        if n == 1:
            noise = max(n_hits - int(true["hits"].sum()), 0)
            place = min(int(np.searchsorted(NOISE_BINS, noise, "right")) - 1, len(self.of_noise) - 1)
            self.of_noise[place] += (1, whole)

    def efficiency(self, n: int) -> float | None:
        """Fraction of the events with n true rings in which all are found; None without such an event."""
        return self.all_found[n] / self.of_number[n] if self.of_number[n] else None

    def result(self) -> dict[str, Any]:
        """The JSON object. `rings`: by the number of true rings; None where there is no such event."""
        with_truth = self.events - self.without_truth
        spread = np.std(self.residuals, axis=0).tolist() if len(self.residuals) > 1 else None
        return {
            "events": self.events,
            "without_truth": self.without_truth,
            "rings": {str(n): self.efficiency(n) for n in (1, 2, 3)},
            "events_of_rings": {str(n): count for n, count in sorted(self.of_number.items())},
            "fakes_per_event": self.fakes / with_truth if with_truth else None,
            "fakes_of_rings": {str(n): self.fakes_of_number[n] / count for n, count in sorted(self.of_number.items())},
            "of_distance": _curve(DISTANCE_BINS, self.of_distance),
            "of_noise": _curve(NOISE_BINS, self.of_noise),
            "resolution_mm": None if spread is None else dict(zip(("x", "y", "radius"), spread, strict=True)),
        }


def _curve(bins: NDArray[Any], counts: NDArray[np.int64]) -> list[dict[str, float | int | None]]:
    """For each bin: its edges, the events, and the fraction in which all rings are found."""
    return [
        {"from": low, "to": high, "events": n, "efficiency": found / n if n else None}
        for low, high, (n, found) in zip(bins[:-1].tolist(), bins[1:].tolist(), counts.tolist(), strict=True)
    ]
