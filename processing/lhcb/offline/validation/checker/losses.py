"""At which stage long particles are lost: a table of reasons that exclude one another."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hltnode.processing.lhcb.offline.validation.checker.categories import CATEGORIES, Stage
from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.offline.validation.checker.particles import ID_BITS, OwnedIds, ParticleTable
from hltnode.processing.offline.arrays import Int64Array, Mask
from hltnode.protocol.lhcb.lhcb_id import scifi_channel

LOSS_CATEGORIES = ("long", "long_p5", "long_p5_pt1", "long_from_b_p5", "long_strange_p5")
# The long tracking asks for hits in this number of SciFi layers.
_SCIFI_LAYERS = 9

REASONS = {
    "no_velo_track": "no VELO track",
    "no_ut_hits": "not reconstructible in the UT, no VELO-UT track",
    "no_ut_track": "no VELO-UT track",
    "few_scifi_layers": f"hits in fewer than {_SCIFI_LAYERS} SciFi layers",
    "no_scifi_part": "no SciFi part found",
}
"""Names in JSON and text; a lost particle counts for the first that holds. Sequences without VELO-UT tracks have no
entries in the second and third."""


class LossCounts:
    """Particles of categories of the stage `long` that were found, or lost for which reason."""

    def __init__(self) -> None:
        of_stage = {category.name: category for category in CATEGORIES[Stage.LONG]}
        self._categories = {name: of_stage[name] for name in LOSS_CATEGORIES}
        self.counts = {name: dict.fromkeys(("reconstructible", "found", *REASONS), 0) for name in LOSS_CATEGORIES}

    def add(self, particles: ParticleTable, matches: Mapping[Stage, TrackMatches]) -> None:
        """Count a batch, which has long tracks."""
        has_track = {stage: np.zeros(len(particles), dtype=bool) for stage in Stage}
        for stage, found in matches.items():
            has_track[stage][found.particle] = True
        everything = np.ones(len(particles), dtype=bool)
        without_ut_track = ~has_track[Stage.UT] if Stage.UT in matches else ~everything
        reasons: dict[str, Mask] = {
            "found": has_track[Stage.LONG],
            "no_velo_track": ~has_track[Stage.VELO],
            "no_ut_hits": without_ut_track & ~particles.has_ut,
            "no_ut_track": without_ut_track,
            "few_scifi_layers": _n_scifi_layers(particles.scifi) < _SCIFI_LAYERS,
            "no_scifi_part": everything,
        }
        first = np.argmax(list(reasons.values()), axis=0)
        for name, category in self._categories.items():
            members = category.belongs(particles)
            self.counts[name]["reconstructible"] += int(members.sum())
            of_reasons = np.bincount(first[members], minlength=len(reasons))
            for reason, n in zip(reasons, of_reasons.tolist(), strict=True):
                self.counts[name][reason] += n

    def result(self) -> dict[str, Any]:
        """The JSON object "losses"."""
        return self.counts


def _n_scifi_layers(owned: OwnedIds) -> Int64Array:
    """The number of SciFi layers in which each particle has a hit."""
    channel = scifi_channel((owned.key & np.uint64((1 << ID_BITS) - 1)).astype(np.uint32))
    seen = np.zeros((len(owned.count), 12), dtype=bool)
    layer = (channel.station.astype(np.int64) - 1) * 4 + channel.layer
    seen[owned.owner, layer] = True
    n: Int64Array = seen.sum(axis=1)
    return n
