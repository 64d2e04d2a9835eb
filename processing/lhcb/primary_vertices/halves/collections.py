"""The collections of the vertices of the VELO halves: tracks by half, vertices by half, pairs of both."""

from enum import IntEnum

from hltnode.processing.framework.collections import F32, U8, U32, Collection, Placement, Role, SharedTypes
from hltnode.processing.lhcb.primary_vertices.collections import LANES, MAX_PVS, PRIMARY_VERTEX
from hltnode.processing.lhcb.velo.collections import cluster_offset, tracks

N_HALVES = 2
MAX_HALF_VERTICES = N_HALVES * MAX_PVS
MAX_HALF_PAIRS = MAX_PVS


class VeloHalf(IntEnum):
    """Side C has the even modules, at x < 0, side A the odd ones."""

    VELO_HALF_C = 0
    VELO_HALF_A = 1


half_types = SharedTypes(
    __file__,
    "half_types",
    enums={"velo_half": VeloHalf},
    sizes={
        "n_velo_halves": N_HALVES,
        "max_half_vertices": MAX_HALF_VERTICES,
        "max_half_pairs": MAX_HALF_PAIRS,
    },
)

assert isinstance(tracks.max_per_event, int)
half_tracks = Collection(
    "half_tracks",
    capacity=lambda limits: tracks.capacity(limits) + N_HALVES * LANES * (limits.events + 1),
    placement=Placement(offsets=cluster_offset, divisor=2 * LANES, per_event=N_HALVES, times=LANES),
    max_per_event=tracks.max_per_event + N_HALVES * LANES,
)
"""VELO tracks that may make vertices, those of side C first. Each half is padded to full lanes."""
half_track_counts = half_tracks.per_event("counts", U32, width=N_HALVES)
"""[event][2]: tracks of side C and of side A, without padding."""
half_track_lines = tuple(half_tracks.column(name, F32) for name in ("x", "y", "z", "tx", "ty"))
"""As pv_track_lines."""
half_weight = half_tracks.column("weight", F32)
half_fit_weight = half_tracks.column("fit_weight", F32)
"""As pv_weight and pv_fit_weight."""

half_vertices = Collection(
    "half_vertices",
    capacity=lambda limits: limits.events * MAX_HALF_VERTICES,
    placement=Placement.fixed(MAX_HALF_VERTICES),
    max_per_event=MAX_HALF_VERTICES,
)
half_vertex = half_vertices.column("vertex", PRIMARY_VERTEX)
"""[event][64]: those of side C in the order of z of their seeds, then those of side A."""
half_side = half_vertices.column("side", U8)
"""The VeloHalf."""
half_vertex_count = half_vertices.per_event("count", U32, role=Role.OUTPUT)

half_pairs = Collection(
    "half_pairs",
    capacity=lambda limits: limits.events * MAX_HALF_PAIRS,
    placement=Placement.fixed(MAX_HALF_PAIRS),
    max_per_event=MAX_HALF_PAIRS,
)
"""A vertex of each side, each the nearest one of the other in z. In the order of side C."""
half_pair_vertices = half_pairs.column("vertices", U8, width=N_HALVES)
"""[pair][2]: numbers of the vertices of side C and of side A in the event."""
half_distance = {name: half_pairs.column(name, F32) for name in ("dx", "dy", "dz")}
"""mm: the vertex of side A minus that of side C."""
half_pair_tracks = half_pairs.column("n_tracks", F32)
"""The smaller sum of weights of tracks of both vertices."""
half_pair_count = half_pairs.per_event("count", U32, role=Role.OUTPUT)
