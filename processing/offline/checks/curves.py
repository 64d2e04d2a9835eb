"""Efficiency against ghost rate: what other cuts on the tracks of a search would give.

Tracks carry the numbers on which a cut can be set. Numbers that the search itself cuts on are in units of its cut, so
that the last point of the curve, at 1, is the operating point.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.checks.counts import ratio


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A cut on tracks: those at or below (or, `least`, at or above) a limit are kept.

    limits: ascending, where the curve has points. The search keeps everything inside the last limit (`least`: the
    first).
    """

    title: str
    limits: Float64Array
    least: bool = False

    def places(self, values: Float64Array) -> Int64Array:
        """For each track the first point of the curve, from the tightest limit on, at which it is kept."""
        if self.least:
            return len(self.limits) - np.searchsorted(self.limits, values, side="right")
        return np.searchsorted(self.limits, values, side="left")

    @property
    def from_tight(self) -> Float64Array:
        """The limits in the order of the points."""
        return self.limits[::-1] if self.least else self.limits


class Curve:
    """Sums for one cut, by the point of the curve from which on tracks and particles are kept.

    categories: names of the categories of particles that have an efficiency.
    """

    def __init__(self, cut: Cut, categories: Sequence[str]) -> None:
        self.cut = cut
        n = len(self.cut.limits) + 1
        self._tracks, self._ghosts = np.zeros((2, n), dtype=np.int64)
        self._found = {name: np.zeros(n, dtype=np.int64) for name in categories}
        self._members = dict.fromkeys(categories, 0)

    def add(
        self,
        values: Float64Array,
        track: Int64Array,
        particle: Int64Array,
        n_particles: int,
        members: Mapping[str, Mask],
    ) -> None:
        """Count a batch.

        values: f64[tracks], the number that is cut on. track, particle: i64[n], rows of tracks and the particles that
        they match; a track without a row is a ghost. members: bool[n_particles] for each category.
        """
        n = len(self._tracks)
        place = self.cut.places(values)
        is_ghost = np.ones(len(place), dtype=bool)
        is_ghost[track] = False
        self._tracks += np.bincount(place, minlength=n)
        self._ghosts += np.bincount(place[is_ghost], minlength=n)
        # A particle is found as soon as any of its tracks is kept; n: it has none.
        first = np.full(n_particles, n)
        np.minimum.at(first, particle, place[track])
        for name, found in self._found.items():
            self._members[name] += int(members[name].sum())
            found += np.bincount(first[members[name]], minlength=n + 1)[:n]

    def result(self) -> dict[str, Any]:
        """The JSON object: one entry a point, from the tightest cut to the operating point."""
        tracks, ghosts = (np.cumsum(sums)[:-1] for sums in (self._tracks, self._ghosts))
        return {
            "title": self.cut.title,
            "limit": self.cut.from_tight.tolist(),
            "tracks": tracks.tolist(),
            "ghosts": ghosts.tolist(),
            "ghost_rate": [ratio(int(g), int(t)) for g, t in zip(ghosts, tracks, strict=True)],
            "categories": {
                name: {
                    "reconstructible": n,
                    "efficiency": [ratio(int(k), n) for k in np.cumsum(self._found[name])[:-1]],
                }
                for name, n in self._members.items()
            },
            "operating_point": {
                "ghost_rate": ratio(int(self._ghosts.sum()), int(self._tracks.sum())),
                "efficiency": {name: ratio(int(self._found[name].sum()), n) for name, n in self._members.items()},
            },
        }
