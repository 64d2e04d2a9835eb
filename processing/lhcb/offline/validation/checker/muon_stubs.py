"""Stubs of the muon stations against truth (docs/physics/validation.md).

Truth has no muon hits. A stub belongs to a long track if it is near the line of the track in the middle of M2.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.muon.collections import muon_stubs, stub_chi2, stub_count, stub_line
from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.offline.validation.checker.muon_id import HARD_P, FlaggedCounts
from hltnode.processing.lhcb.offline.validation.checker.particles import MUON, ParticleTable
from hltnode.processing.lhcb.tracks.long.collections import Z_END_SCIFI, long_state
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.checks.counts import ratio
from hltnode.processing.offline.workspace_columns import Objects

STUB_COLUMNS = (stub_count, *stub_line.values(), *stub_chi2.values())
"""Columns that an engine must retain."""
Z_M2 = 15_270.0
"""mm: the middle of M2, where stubs have their positions."""
NEAR_X, NEAR_Y = 100.0, 200.0
"""mm: of muons above 6 GeV, 95 % are within 38 and 104 mm."""
MAX_CHI2_X, MAX_CHI2_Y = 1.0, 0.3
"""Cuts of the line OneMuonTrack."""


def has_stubs(sequence: AlgorithmSequence) -> bool:
    """Whether a sequence searches for stubs."""
    return set(STUB_COLUMNS) <= set(sequence.columns)


@dataclass(frozen=True, slots=True, eq=False)
class StubTable:
    """Stubs, one row each: event, place (mm) in the middle of M2, and whether the line OneMuonTrack accepts it."""

    event: Int64Array
    x: Float64Array
    y: Float64Array
    good: Mask

    @classmethod
    def read(cls, workspace: Workspace) -> Self:
        """The stubs of a batch."""
        of = Objects(workspace, muon_stubs, stub_count)
        good = (of(stub_chi2["chi2_x"]) < MAX_CHI2_X) & (of(stub_chi2["chi2_y"]) < MAX_CHI2_Y)
        x, y = (of(stub_line[name]).astype(np.float64) for name in ("x", "y"))
        return cls(of.event, x, y, good)

    def of_kept_events(self, kept: Mask) -> Self:
        """The stubs of the events that are kept (bool[events]), which are numbered anew."""
        event = np.where(kept, np.cumsum(kept) - 1, -1)[self.event]
        chosen = event >= 0
        return type(self)(event[chosen], self.x[chosen], self.y[chosen], self.good[chosen])

    def near_long_tracks(self, of: Objects) -> Mask:
        """For each long track whether a stub that the line accepts is near."""
        x, y, tx, ty = (of(long_state[name]).astype(np.float64) for name in ("x", "y", "tx", "ty"))
        way = Z_M2 - Z_END_SCIFI
        return self.near(of.event, x + way * tx, y + way * ty)

    def near(self, event: Int64Array, x: Float64Array, y: Float64Array) -> Mask:
        """For each place in the middle of M2 whether a stub that the line accepts is near."""
        found = np.zeros(len(event), bool)
        for i in np.flatnonzero(self.good):
            found |= (event == self.event[i]) & (np.abs(x - self.x[i]) < NEAR_X) & (np.abs(y - self.y[i]) < NEAR_Y)
        return found


class StubCounts:
    """Stubs of events, and particles above 6 GeV with a long track through all muon stations that have one."""

    def __init__(self) -> None:
        self.events = 0
        self.stubs = 0
        self.selected_events = 0
        self.muons = FlaggedCounts()
        self.others = FlaggedCounts()

    def add(self, stubs: StubTable, n_events: int) -> None:
        """Count the stubs of a batch."""
        self.events += n_events
        self.stubs += len(stubs.event)
        self.selected_events += len(np.unique(stubs.event[stubs.good]))

    def add_tracks(self, near_stub: Mask, passes: Mask, particles: ParticleTable, matches: TrackMatches) -> None:
        """Count particles; near_stub: for each long track; passes: whether its line passes all stations."""
        matched, flagged = np.zeros((2, len(particles)), bool)
        matched[matches.particle[passes[matches.track]]] = True
        flagged[matches.particle[(passes & near_stub)[matches.track]]] = True
        matched &= particles.p > HARD_P
        true_muon = np.abs(particles.pid) == MUON
        self.muons.add(matched & true_muon, flagged)
        self.others.add(matched & ~true_muon, flagged)

    def result(self) -> dict[str, Any]:
        """The JSON object "muon"."stubs"; rates are None if the denominator is 0."""
        return {
            "stubs": self.stubs,
            "per_event": ratio(self.stubs, self.events),
            "selected_events": ratio(self.selected_events, self.events),
            "muons": self.muons.total,
            "efficiency": ratio(self.muons.flagged, self.muons.total),
            "others_near": ratio(self.others.flagged, self.others.total),
        }
