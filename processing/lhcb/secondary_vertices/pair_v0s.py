"""secondary_vertices_pair_v0s: composite candidates of two V0."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.secondary_vertices.collections import (
    v0_pair_count,
    v0_pair_doca,
    v0_pair_mass,
    v0_pair_vertices,
    vertex_count,
    vertex_kind,
    vertex_momentum,
    vertex_position,
    vertex_tracks_of,
)

pair_v0s = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=32,
    reads=(
        vertex_count,
        vertex_tracks_of,
        vertex_kind,
        *vertex_position.values(),
        *(vertex_momentum[name] for name in ("px", "py", "pz")),
    ),
    updates=(event_flags,),
    writes=(v0_pair_count, v0_pair_vertices, v0_pair_mass, v0_pair_doca),
    constants={"max_doca": 10.0},
)
"""mm."""
