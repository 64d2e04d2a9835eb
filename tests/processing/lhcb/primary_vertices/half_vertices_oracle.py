"""Vertices of the VELO halves in slow and simple code: NumPy, double precision (docs/physics/velo-halves.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.velo import BeamLine
from tests.processing.lhcb.primary_vertices.primary_vertices_oracle import Cuts, Tracks, Vertex, find_vertices

CUTS = Cuts(max_z_error=3.0, min_integral=1.75, min_tracks=3)


def vertices_of_halves(
    tracks: Tracks, sides: Sequence[NDArray[np.int64]], beamline: BeamLine
) -> tuple[list[Vertex], list[Vertex]]:
    """The vertices of side C and of side A; sides: 0 or 1 for each hit of each track."""
    found = []
    for half in (0, 1):
        chosen = np.array([bool(np.all(of_track == half)) for of_track in sides], bool)
        names = ("x", "y", "z", "tx", "ty", "weight")
        found.append(find_vertices(Tracks(*(getattr(tracks, name)[chosen] for name in names)), beamline, CUTS))
    return found[0], found[1]


def pairs_in_z(z_c: Sequence[float], z_a: Sequence[float], max_dz: float = 5.0) -> list[tuple[int, int]]:
    """Numbers (c, a) of the vertices that are the nearest ones of each other, in the order of side C."""
    pairs = []
    for c, z in enumerate(z_c):
        distances = [abs(other - z) for other in z_a]
        if not distances or min(distances) >= max_dz:
            continue
        a = distances.index(min(distances))
        back = [abs(z_a[a] - other) for other in z_c]
        if back.index(min(back)) == c:
            pairs.append((c, a))
    return pairs
