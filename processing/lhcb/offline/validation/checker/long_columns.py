"""Columns of long tracks that the checker reads besides their hits: numbers to cut on, flight through the muon
stations, and two-track vertices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.offline.validation.checker.decays import VertexTable
from hltnode.processing.lhcb.secondary_vertices import collections as secondary
from hltnode.processing.lhcb.tracks.forward.search_with_ut import search_with_ut
from hltnode.processing.lhcb.tracks.forward.search_without_ut import search_without_ut
from hltnode.processing.lhcb.tracks.kalman.collections import long_full_chi2
from hltnode.processing.lhcb.tracks.long.collections import (
    Z_END_SCIFI,
    TrackOrigin,
    long_origin,
    long_quality,
    long_state,
)
from hltnode.processing.lhcb.tracks.looking_forward.complete_tracks import complete_tracks
from hltnode.processing.lhcb.tracks.matching.match_seeds import match_seeds
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.workspace_columns import Objects

_MASSES = ("m_pipi", "m_kk", "m_ppi", "m_pip", "m_mumu")
LONG_COLUMNS = (long_origin, long_quality, *long_state.values())
"""Read of all long tracks."""
VERTEX_COLUMNS = (
    secondary.vertex_count,
    secondary.vertex_tracks_of,
    secondary.vertex_kind,
    *secondary.vertex_position.values(),
    *(secondary.vertex_covariance[name] for name in ("c00", "c11", "c22")),
    *(secondary.vertex_masses[name] for name in _MASSES),
)
"""Read of the vertices that they make."""

_QUALITY_CUTS = {
    (search_with_ut.name, "max_quality"): TrackOrigin.FORWARD,
    (complete_tracks.name, "max_quality"): TrackOrigin.FORWARD,
    (search_without_ut.name, "max_quality"): TrackOrigin.FORWARD_NO_UT,
    (match_seeds.name, "max_score"): TrackOrigin.MATCHED,
}
"""The constants that bound the quality of long tracks, and the origin of these tracks."""

# The muon stations in units of z, which is nearly the same for all: beam pipe and outer border, in x and y.
_INNER, _OUTER = (0.0201, 0.0163), (0.3211, 0.2665)
# Middles of M2 and M5, mm.
_FIRST_Z, _LAST_Z = 15_262.0, 18_869.0


def cuts_of(sequence: AlgorithmSequence, of: Objects) -> dict[str, Float64Array]:
    """Numbers of long tracks that can be cut on, by their names in curves.py; quality in units of the search's cut."""
    constants = {
        (algorithm.name, constant.name): float(constant.value)
        for algorithm in sequence
        for constant in algorithm.constants
    }
    largest = np.ones(len(TrackOrigin))
    for name, origin in _QUALITY_CUTS.items():
        largest[origin] = constants.get(name, largest[origin])
    cuts = {"quality": of(long_quality).astype(np.float64) / largest[of(long_origin)]}
    if long_full_chi2 in sequence.columns:
        cuts["chi2"] = of(long_full_chi2).astype(np.float64)
    return cuts


def passes_muon_stations(of: Objects) -> Mask:
    """Whether the straight line of each long track behind the SciFi passes through the muon stations, M2 to M5."""
    x, y, tx, ty = (of(long_state[name]).astype(np.float64) for name in ("x", "y", "tx", "ty"))
    passes = np.ones(len(x), dtype=bool)
    for z in (_FIRST_Z, _LAST_Z):
        at_x, at_y = (np.abs(place + slope * (z - Z_END_SCIFI)) / z for place, slope in ((x, tx), (y, ty)))
        passes &= (at_x < _OUTER[0]) & (at_y < _OUTER[1]) & ((at_x > _INNER[0]) | (at_y > _INNER[1]))
    return passes


def vertices_of(workspace: Workspace, first_long: Int64Array, p: Float64Array) -> VertexTable:
    """The two-track vertices of a batch; first_long: row of the first long track of each event; p: of long tracks."""
    of = Objects(workspace, secondary.two_track_vertices, secondary.vertex_count)
    tracks = of(secondary.vertex_tracks_of).astype(np.int64) + first_long[of.event][:, None]
    masses = {name: of(secondary.vertex_masses[name]).astype(np.float64) for name in _MASSES}
    # The track with more momentum is the proton.
    proton_first = p[tracks[:, 0]] > p[tracks[:, 1]] if len(tracks) else np.empty(0, bool)
    return VertexTable(
        tracks=tracks,
        place=_stacked(of, *secondary.vertex_position.values()),
        variance=_stacked(of, *(secondary.vertex_covariance[name] for name in ("c00", "c11", "c22"))),
        kind=of(secondary.vertex_kind).astype(np.int64),
        masses={
            "ks": masses["m_pipi"],
            "lambda": np.where(proton_first, masses["m_ppi"], masses["m_pip"]),
            "phi": masses["m_kk"],
            "jpsi": masses["m_mumu"],
        },
    )


def _stacked(of: Objects, *columns: Column) -> NDArray[Any]:
    return np.stack([of(column).astype(np.float64) for column in columns], axis=1)
