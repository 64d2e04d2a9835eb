"""Efficiency against ghost rate of the tracking stages, for the cuts that their tracks carry."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hltnode.processing.lhcb.offline.validation.checker.categories import CATEGORIES, Stage
from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.offline.checks.curves import Curve, Cut

CURVE_CATEGORIES = {
    Stage.VELO: ("velo_eta25", "long", "long_from_b_p5"),
    Stage.UT: ("velo_ut", "velo_ut_p5", "long_from_b_p5"),
    Stage.LONG: ("long", "long_p5", "long_p5_pt1", "long_from_b_p5"),
}
"""Categories of particles for which there are curves."""

CUTS = {
    "hits": Cut("least number of hits", np.arange(3.0, 13.0), least=True),
    "ut_hits": Cut("least number of UT hits", np.array([3.0, 4.0]), least=True),
    "quality": Cut("quality / largest that its search keeps", np.linspace(0.02, 1.0, 50)),
    "chi2": Cut("chi2 per hit in the SciFi", np.geomspace(0.1, 100.0, 31)),
}
"""Cuts by their names in TrackTable.cuts."""


class Curves:
    """All curves of a job, by stage and name of the cut."""

    def __init__(self) -> None:
        self._curves: dict[tuple[Stage, str], Curve] = {}

    def add(self, stage: Stage, tracks: TrackTable, particles: ParticleTable, matches: TrackMatches) -> None:
        """Count the tracks of a stage of a batch."""
        wanted = CURVE_CATEGORIES[stage]
        members = {
            category.name: category.belongs(particles) for category in CATEGORIES[stage] if category.name in wanted
        }
        for name, values in tracks.cuts.items():
            if (stage, name) not in self._curves:
                self._curves[stage, name] = Curve(CUTS[name], wanted)
            self._curves[stage, name].add(values, matches.track, matches.particle, len(particles), members)

    def __iter__(self) -> Iterator[tuple[tuple[Stage, str], Curve]]:
        return iter(self._curves.items())

    def result(self) -> dict[str, Mapping[str, Any]]:
        """The JSON object "curves", by stage and cut."""
        found: dict[str, dict[str, Any]] = {}
        for (stage, name), curve in self:
            found.setdefault(stage.value, {})[name] = curve.result()
        return dict(found)
