"""Downstream tracks in truth: charged particles with hits in UT and SciFi and none in the VELO.

The table says how many there are, and how many of their hits no long track uses; downstream_tracks.py says which of
them a sequence finds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hltnode.processing.lhcb.offline.validation.checker.particles import OwnedIds, ParticleTable, id_keys
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.offline.arrays import Mask
from hltnode.processing.offline.checks.counts import ratio

KAON_SHORT, LAMBDA = 310, 3122


def _seen(t: ParticleTable) -> Mask:
    seen: Mask = t.is_down & (t.velo.count == 0) & t.in_acceptance
    return seen


def _downstream(t: ParticleTable) -> Mask:
    return _seen(t) & ~t.is_electron


def _from(t: ParticleTable, mother: int) -> Mask:
    found: Mask = _downstream(t) & (np.abs(t.mother_pid) == mother)
    return found


Belongs = Callable[[ParticleTable], Mask]

CATEGORIES: dict[str, tuple[str, Belongs]] = {
    "all": ("all but electrons", _downstream),
    "all_p5": ("all but electrons, P>5GeV", lambda t: _downstream(t) & (t.p > 5000)),
    "from_ks": ("of K0S", lambda t: _from(t, KAON_SHORT)),
    "from_ks_p5": ("of K0S, P>5GeV", lambda t: _from(t, KAON_SHORT) & (t.p > 5000)),
    "from_lambda": ("of Lambda", lambda t: _from(t, LAMBDA)),
    "from_lambda_p5": ("of Lambda, P>5GeV", lambda t: _from(t, LAMBDA) & (t.p > 5000)),
    "electrons": ("electrons", lambda t: _seen(t) & t.is_electron),
}
"""Text and members of each category, by its name in JSON."""


@dataclass(slots=True)
class HitCounts:
    """Hits of particles in a detector, and those of them on no long track."""

    hits: int = 0
    unused: int = 0

    def result(self) -> dict[str, Any]:
        """The JSON object."""
        return {"hits": self.hits, "unused": self.unused, "unused_rate": ratio(self.unused, self.hits)}


@dataclass(slots=True)
class DownstreamCategory:
    """Sums over the particles of a category."""

    particles: int = 0
    ut: HitCounts = field(default_factory=HitCounts)
    scifi: HitCounts = field(default_factory=HitCounts)


class DownstreamCounts:
    """The table of downstream particles, summed over events."""

    def __init__(self) -> None:
        self.events = 0
        self.categories = {name: DownstreamCategory() for name in CATEGORIES}

    def add(self, particles: ParticleTable, long: TrackTable) -> None:
        """Count a batch and its long tracks."""
        self.events += particles.n_events
        used = id_keys(np.repeat(long.event, long.n_ids), long.ids)
        unused = {of: ~np.isin(of.key, used) for of in (particles.ut, particles.scifi)}
        for name, counts in self.categories.items():
            members = CATEGORIES[name][1](particles)
            counts.particles += int(members.sum())
            _add(counts.ut, members, particles.ut, unused[particles.ut])
            _add(counts.scifi, members, particles.scifi, unused[particles.scifi])

    def result(self) -> dict[str, Any]:
        """The JSON object "downstream": particles and hits by category."""
        return {
            name: {
                "particles": counts.particles,
                "per_event": ratio(counts.particles, self.events),
                "ut": counts.ut.result(),
                "scifi": counts.scifi.result(),
            }
            for name, counts in self.categories.items()
        }


def _add(counts: HitCounts, members: Mask, owned: OwnedIds, unused: Mask) -> None:
    of_members = members[owned.owner]
    counts.hits += int(of_members.sum())
    counts.unused += int((of_members & unused).sum())
