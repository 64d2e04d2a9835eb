"""Vertices of two downstream tracks against decays in truth (docs/physics/validation.md).

A decay to find has two daughters with hits in UT and SciFi, not reconstructible in the VELO, in 2 < eta < 5.
"""

import numpy as np

from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.lhcb.offline.validation.checker.decays import DecayChecks, DecayKind, VertexTable
from hltnode.processing.lhcb.offline.validation.checker.downstream_tracks import wanted
from hltnode.processing.lhcb.secondary_vertices.downstream.collections import (
    DownstreamV0Kind,
    downstream_v0_count,
    downstream_v0_kind,
    downstream_v0_masses,
    downstream_v0_position,
    downstream_v0_tracks,
)
from hltnode.processing.offline.arrays import Int64Array
from hltnode.processing.offline.checks.binning import Binning
from hltnode.processing.offline.checks.residuals import ResidualHistogram
from hltnode.processing.offline.workspace_columns import Objects

_MASSES = {"ks": "m_pipi", "lambda": "m_ppi"}
DOWNSTREAM_V0_COLUMNS = (
    *(downstream_v0_count, downstream_v0_tracks, downstream_v0_kind, *downstream_v0_position.values()),
    *(downstream_v0_masses[name] for name in _MASSES.values()),
)
"""Columns that an engine must retain."""

DOWNSTREAM_DECAYS = {
    "ks": DecayKind(
        r"downstream $K^0_S \to \pi^+ \pi^-$", 310, (211, 211), DownstreamV0Kind.DOWNSTREAM_KS, 497.61, 437.6, 557.6
    ),
    "lambda": DecayKind(
        r"downstream $\Lambda \to p \pi^-$",
        *(3122, (211, 2212), DownstreamV0Kind.DOWNSTREAM_LAMBDA, 1115.683, 1091.7, 1139.7),
    ),
}
"""Kinds of decays by their names in JSON."""

_Z = Binning("z of the decay", "mm", np.linspace(300, 2300, 11))
_LIMITS = {"x": 10.0, "y": 10.0, "z": 200.0}
"""mm."""


def has_downstream_v0s(sequence: AlgorithmSequence) -> bool:
    """Whether a sequence makes vertices of downstream tracks."""
    return set(DOWNSTREAM_V0_COLUMNS) <= set(sequence.columns)


def downstream_checks() -> DecayChecks:
    """Empty counts of decays behind the VELO."""
    return DecayChecks(
        DOWNSTREAM_DECAYS,
        wanted,
        lambda: {f"d{a}": ResidualHistogram(f"decay vertex $\\Delta {a}$", "mm", _LIMITS[a], _Z) for a in "xyz"},
    )


def read_downstream_v0s(of: Objects, first_track: Int64Array) -> VertexTable:
    """The vertices of a batch; `of` their collection; first_track: row of the first downstream track of each event."""
    place = np.stack([of(column).astype(np.float64) for column in downstream_v0_position.values()], axis=1)
    return VertexTable(
        tracks=of(downstream_v0_tracks).astype(np.int64) + first_track[of.event][:, None],
        place=place,
        variance=np.full_like(place, np.nan),
        kind=of(downstream_v0_kind).astype(np.int64),
        masses={decay: of(downstream_v0_masses[name]).astype(np.float64) for decay, name in _MASSES.items()},
    )
