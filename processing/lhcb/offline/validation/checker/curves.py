"""Efficiency against ghost rate of a tracking stage: what other cuts on its tracks would give.

Tracks of a stage carry the numbers on which a cut can be set. Those that the search itself cuts on are given in units
of its cut, so that the last point of the curve, at 1, is the operating point.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hltnode.processing.lhcb.offline.validation.checker.categories import CATEGORIES, Stage
from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.offline.validation.checker.particles import Float64Array, Int64Array, ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.stage_counts import ratio
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable

CURVE_CATEGORIES = {
    Stage.VELO: ("velo_eta25", "long", "long_from_b_p5"),
    Stage.UT: ("velo_ut", "velo_ut_p5", "long_from_b_p5"),
    Stage.LONG: ("long", "long_p5", "long_p5_pt1", "long_from_b_p5"),
}
"""Categories of particles for which there are curves."""


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


CUTS = {
    "hits": Cut("least number of hits", np.arange(3.0, 13.0), least=True),
    "ut_hits": Cut("least number of UT hits", np.array([3.0, 4.0]), least=True),
    "quality": Cut("quality / largest that its search keeps", np.linspace(0.02, 1.0, 50)),
    "chi2": Cut("chi2 per hit in the SciFi", np.geomspace(0.1, 100.0, 31)),
}
"""By the names in TrackTable.cuts."""


class Curve:
    """Sums of one stage and one cut, by the point of the curve from which on tracks and particles are kept."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.cut = CUTS[name]
        of_stage = {category.name: category for category in CATEGORIES[stage]}
        self._categories = {name: of_stage[name] for name in CURVE_CATEGORIES[stage]}
        n = len(self.cut.limits) + 1
        self._tracks, self._ghosts = np.zeros((2, n), dtype=np.int64)
        self._found = {name: np.zeros(n, dtype=np.int64) for name in self._categories}
        self._members = dict.fromkeys(self._categories, 0)

    def add(self, values: Float64Array, particles: ParticleTable, matches: TrackMatches) -> None:
        """Count a batch; values: on which the cut is set, of each track."""
        n = len(self._tracks)
        place = self.cut.places(values)
        is_ghost = np.ones(len(place), dtype=bool)
        is_ghost[matches.track] = False
        self._tracks += np.bincount(place, minlength=n)
        self._ghosts += np.bincount(place[is_ghost], minlength=n)
        # A particle is found as soon as any of its tracks is kept; n: it has none.
        first = np.full(len(particles), n)
        np.minimum.at(first, matches.particle, place[matches.track])
        for name, category in self._categories.items():
            members = category.belongs(particles)
            self._members[name] += int(members.sum())
            self._found[name] += np.bincount(first[members], minlength=n + 1)[:n]

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


class Curves:
    """All curves of a job, by stage and name of the cut."""

    def __init__(self) -> None:
        self._curves: dict[tuple[Stage, str], Curve] = {}

    def add(self, stage: Stage, tracks: TrackTable, particles: ParticleTable, matches: TrackMatches) -> None:
        """Count the tracks of a stage of a batch."""
        for name, values in tracks.cuts.items():
            if (stage, name) not in self._curves:
                self._curves[stage, name] = Curve(stage, name)
            self._curves[stage, name].add(values, particles, matches)

    def __iter__(self) -> Iterator[tuple[tuple[Stage, str], Curve]]:
        return iter(self._curves.items())

    def result(self) -> dict[str, Mapping[str, Any]]:
        """The JSON object "curves", by stage and cut."""
        found: dict[str, dict[str, Any]] = {}
        for (stage, name), curve in self:
            found.setdefault(stage.value, {})[name] = curve.result()
        return dict(found)
