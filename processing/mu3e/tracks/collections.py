"""Triplets of hits and tracks of each sub-slice: bounds, shapes and units."""

import numpy as np

from hltnode.processing.framework.collections import (
    U32,
    U64,
    Collection,
    Placement,
    Record,
    Role,
    SharedTypes,
)

MAX_TRIPLETS = 2048
MAX_TRACKS = 512
"""Triplets and tracks of a sub-slice, with those behind it that its vertices need. 10^8 muons a second give about 50
tracks."""
MAX_COMBINATIONS = 1 << 22
"""Combinations of a hit of layer 0 with hits of layers 1 and 2 within the time window, of a sub-slice: they bound the
time that the selection takes. 2,048 hits at one time would have 3 * 10^8."""
NO_PIXEL = 0xFFFF_FFFF

TRACK = Record(
    "mu3e_track",
    np.dtype(
        [(name, "<f4") for name in ("x", "y", "z", "px", "py", "pz", "momentum", "chi2", "time")]
        + [("charge", "<i4")]
        + [(name, "<u4") for name in ("hits", "first", "last", "pixel0", "pixel1", "pixel2", "pixel3", "recurl")]
    ),
    {
        "x": "mm, of the hit in layer 0",
        "y": "mm",
        "z": "mm",
        "px": "MeV/c there, outwards",
        "py": "MeV/c",
        "pz": "MeV/c",
        "momentum": "MeV/c",
        "chi2": "of all its triplets",
        "time": "ns since the start of the sub-slice, mean of the hits of its triplet",
        "charge": "1 or -1",
        "hits": "3: the triplet alone; 4 or 5: with one in layer 3 or a recurling one",
        "first": "ns since the start of the sub-slice, of the first hit of the triplet",
        "last": "ns, of the last one",
        "pixel0": "sensor << 16 | column << 8 | row",
        "pixel3": "no_pixel: no such hit",
        "recurl": "of the recurling hit, or no_pixel",
    },
)

track_types = SharedTypes(
    __file__,
    "track_types",
    records=(TRACK,),
    sizes={
        "mu3e_max_triplets": MAX_TRIPLETS,
        "mu3e_max_tracks": MAX_TRACKS,
        "mu3e_max_combinations": MAX_COMBINATIONS,
        "no_pixel": NO_PIXEL,
    },
)

triplets = Collection(
    "mu3e_triplets",
    capacity=lambda limits: MAX_TRIPLETS * limits.events,
    placement=Placement.fixed(MAX_TRIPLETS),
    max_per_event=MAX_TRIPLETS,
)
triplet = triplets.column("triplet", U64)
"""The three hits: places from bits 32, 16 and 0 on. Those that begin in the sub-slice come first; in ascending order
otherwise."""
triplet_count = triplets.per_event("count", U32, role=Role.OUTPUT)
own_triplet_count = triplets.per_event("own", U32)
"""Those whose first hit lies in the sub-slice."""

tracks = Collection(
    "mu3e_tracks",
    capacity=lambda limits: MAX_TRACKS * limits.events,
    placement=Placement.fixed(MAX_TRACKS),
    max_per_event=MAX_TRACKS,
)
fitted = tracks.column("fitted", U64)
"""The triplet of each track."""
track = tracks.column("track", TRACK)
track_count = tracks.per_event("count", U32)
own_track_count = tracks.per_event("own", U32, role=Role.OUTPUT)
"""Tracks whose first hit lies in the sub-slice, the first ones."""
