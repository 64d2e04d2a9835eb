"""secondary_vertices_find_pairs: pairs of tracks that are close to each other."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.secondary_vertices.collections import (
    vertex_pair_count,
    vertex_pair_kind,
    vertex_pair_tracks,
    vertex_track_count,
    vertex_track_ip_chi2,
    vertex_track_line,
    vertex_track_number,
    vertex_track_use,
)

find_pairs = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        vertex_track_count,
        vertex_track_number,
        vertex_track_use,
        *vertex_track_line.values(),
        vertex_track_ip_chi2,
    ),
    updates=(event_flags,),
    writes=(vertex_pair_count, vertex_pair_tracks, vertex_pair_kind),
    constants={
        "displaced_max_doca": 1.0,
        "v0_max_doca": 0.5,
        "dimuon_max_doca": 0.5,
        "same_pv_below_ip_chi2": 16.0,
    },
)
"""mm. Two displaced tracks whose IP chi2 are both below `same_pv_below_ip_chi2` must belong to the same primary
vertex."""
