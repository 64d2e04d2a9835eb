"""The collections of the vertex finder: tracks at the beam line, seeds, primary vertices."""

import numpy as np

from hltnode.processing.framework.collections import F32, U32, Collection, Placement, Record, Role, SharedTypes
from hltnode.processing.lhcb.velo.collections import cluster_offset, tracks

LANES = 32
"""Number of lanes of sums over tracks; the tracks of an event are padded to full lanes."""
MAX_SEEDS = 64
"""Seeds per event: twice the maximum number of vertices, since neighbouring peaks may merge."""
MAX_PVS = 32

PRIMARY_VERTEX = Record(
    "primary_vertex",
    np.dtype([(name, "<f4") for name in ("x", "y", "z", "c00", "c10", "c11", "c20", "c21", "c22", "n_tracks")]),
    {"x": "mm", "c00": "covariance in mm^2: 0 = x, 1 = y, 2 = z", "n_tracks": "sum of the weights of its tracks"},
)

pv_types = SharedTypes(
    __file__,
    "pv_types",
    records=(PRIMARY_VERTEX,),
    sizes={
        "pv_lanes": LANES,
        "max_pv_seeds": MAX_SEEDS,
        "max_pvs": MAX_PVS,
    },
)

assert isinstance(tracks.max_per_event, int)
pv_tracks = Collection(
    "pv_tracks",
    capacity=lambda limits: tracks.capacity(limits) + LANES * (limits.events + 1),
    placement=Placement(offsets=cluster_offset, divisor=2 * LANES, per_event=1, times=LANES),
    max_per_event=tracks.max_per_event + LANES,
)
"""VELO tracks that may make primary vertices. An event has room for its tracks and for padding to full lanes."""
pv_track_count = pv_tracks.per_event("count", U32)
pv_track_lines = tuple(pv_tracks.column(name, F32) for name in ("x", "y", "z", "tx", "ty"))
"""x, y, z in mm at the closest approach to the beam line."""
pv_weight = pv_tracks.column("weight", F32)
"""1 / var(x) = 1 / var(y) of the VELO filter, in 1/mm²."""
pv_fit_weight = pv_tracks.column("fit_weight", F32)
"""1 / var(x) for the fit, in 1/mm²: includes the scattering of a track from a collision."""

pv_seeds = Collection(
    "pv_seeds",
    capacity=lambda limits: limits.events * MAX_SEEDS,
    placement=Placement.fixed(MAX_SEEDS),
    max_per_event=MAX_SEEDS,
)
seed_z = pv_seeds.column("z", F32)
"""[event][64], mm, ascending."""
seed_count = pv_seeds.per_event("count", U32)
fitted = pv_seeds.column("fitted", PRIMARY_VERTEX)
"""[event][64], one for each seed; n_tracks is 0 if the fit was rejected."""

pvs = Collection(
    "pvs",
    capacity=lambda limits: limits.events * MAX_PVS,
    placement=Placement.fixed(MAX_PVS),
    max_per_event=MAX_PVS,
)
vertices = pvs.column("vertex", PRIMARY_VERTEX)
"""[event][32], in the order of z of their seeds."""
pv_count = pvs.per_event("count", U32, role=Role.OUTPUT)
