"""velo_halves_pair_vertices: distances of the vertices of both halves of the VELO."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.primary_vertices.halves.collections import (
    half_distance,
    half_pair_count,
    half_pair_tracks,
    half_pair_vertices,
    half_side,
    half_vertex,
    half_vertex_count,
)

pair_vertices = Algorithm.beside(
    __file__,
    prefix="velo_halves",
    grid=Grid.EVENTS,
    block_size=32,
    reads=(half_vertex, half_side, half_vertex_count),
    writes=(half_pair_vertices, *half_distance.values(), half_pair_tracks, half_pair_count),
    constants={"max_dz": 5.0},  # mm
)
"""`max_dz`: the largest distance in z of a pair, mm."""
