"""Vertices and windows of each sub-slice: bounds, shapes and units."""

import numpy as np

from hltnode.processing.framework.collections import U32, Collection, Placement, Record, Role, SharedTypes

MAX_PAIRS = 1024
"""Pairs of an electron and a positron that cross near the target."""
MAX_VERTICES = 32
MAX_WINDOWS = 8

VERTEX = Record(
    "mu3e_vertex",
    np.dtype(
        [(name, "<f4") for name in ("x", "y", "z", "chi2", "distance", "energy", "momentum", "mass", "time")]
        + [(name, "<u4") for name in ("first", "last", "track0", "track1", "track2")]
    ),
    {
        "x": "mm",
        "y": "mm",
        "z": "mm",
        "chi2": "of the three tracks",
        "distance": "mm, largest one of a track from the vertex",
        "energy": "MeV, sum of the three",
        "momentum": "MeV/c, size of their vector sum",
        "mass": "MeV/c^2",
        "time": "ns since the start of the sub-slice, mean of the tracks",
        "first": "ns since the start of the sub-slice, of the first hit",
        "last": "ns, of the last hit",
        "track0": "place of the first positron among the tracks of the sub-slice",
        "track1": "second positron",
        "track2": "electron",
    },
)
WINDOW = Record(
    "mu3e_window",
    np.dtype(
        [("start_ns", "<i4"), ("end_ns", "<i4"), ("lines", "<u4"), ("vertices", "<u4")]
        + [(name, "<f4") for name in ("chi2", "energy_error", "momentum")]
        + [("hits", "<u4")]
    ),
    {
        "start_ns": "first ns that is kept, since the start of the sub-slice; may be negative",
        "end_ns": "first ns behind it",
        "lines": "1: it has a vertex; 2: all its tracks have a fourth hit; 4: a recurling one",
        "vertices": "number of vertices that begin in it",
        "chi2": "smallest one of its vertices",
        "energy_error": "MeV, smallest distance of the energy from the mass of the muon",
        "momentum": "MeV/c, smallest sum of momenta",
        "hits": "largest number of hits of the tracks of a vertex",
    },
)

vertex_types = SharedTypes(
    __file__,
    "vertex_types",
    records=(VERTEX, WINDOW),
    sizes={
        "mu3e_max_pairs": MAX_PAIRS,
        "mu3e_max_vertices": MAX_VERTICES,
        "mu3e_max_windows": MAX_WINDOWS,
        "window_of_vertex": 1,
        "window_of_long_tracks": 2,
        "window_of_recurling_tracks": 4,
    },
)

vertices = Collection(
    "mu3e_vertices",
    capacity=lambda limits: MAX_VERTICES * limits.events,
    placement=Placement.fixed(MAX_VERTICES),
    max_per_event=MAX_VERTICES,
)
vertex_count = vertices.per_event("count", U32, role=Role.OUTPUT)
vertex = vertices.column("vertex", VERTEX)

windows = Collection(
    "mu3e_windows",
    capacity=lambda limits: MAX_WINDOWS * limits.events,
    placement=Placement.fixed(MAX_WINDOWS),
    max_per_event=MAX_WINDOWS,
)
window_count = windows.per_event("count", U32, role=Role.OUTPUT)
window = windows.column("window", WINDOW)
