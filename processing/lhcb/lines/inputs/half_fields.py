"""The inputs of lines on vertices of the VELO halves, and their fields."""

from hltnode.processing.lhcb.primary_vertices.halves.collections import (
    VeloHalf,
    half_distance,
    half_pair_count,
    half_pair_tracks,
    half_pair_vertices,
    half_side,
    half_vertex,
    half_vertex_count,
)
from hltnode.processing.lhcb.primary_vertices.halves.collections import half_pairs as half_pair_collection
from hltnode.processing.lhcb.primary_vertices.halves.collections import half_vertices as half_vertex_collection
from hltnode.processing.selection.expressions.units import LENGTH, NO_UNIT
from hltnode.processing.selection.lines.inputs import ColumnField, DerivedField, Input, RelatedField

half_vertices = Input(
    "vertices of VELO halves",
    "primary vertices of the tracks of one half of the VELO, of the sequence velo_halves",
    {
        **{axis: ColumnField(half_vertex, "position", LENGTH, axis) for axis in "xyz"},
        "n_tracks": ColumnField(half_vertex, "sum of the weights of its tracks", NO_UNIT, "n_tracks"),
        "is_a": DerivedField(lambda v: v._side == int(VeloHalf.VELO_HALF_A), "true for side A, x > 0"),
        "_side": ColumnField(half_side, "0 side C, 1 side A"),
    },
    collection=half_vertex_collection,
    count=half_vertex_count,
)

half_pairs = Input(
    "pairs of vertices of both VELO halves",
    "a vertex of each half, each the nearest one of the other in z, of the sequence velo_halves",
    {
        "a": RelatedField(
            half_vertices, ColumnField(half_pair_vertices, "", element=VeloHalf.VELO_HALF_A), "its vertex of side A"
        ),
        "c": RelatedField(
            half_vertices, ColumnField(half_pair_vertices, "", element=VeloHalf.VELO_HALF_C), "its vertex of side C"
        ),
        **{
            name: ColumnField(column, f"{name[1]} of the vertex of side A minus that of side C", LENGTH)
            for name, column in half_distance.items()
        },
        "n_tracks": ColumnField(half_pair_tracks, "smaller sum of weights of tracks of both vertices"),
    },
    collection=half_pair_collection,
    count=half_pair_count,
)
