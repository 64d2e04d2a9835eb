"""Ends of segments, and merged tracks: bounds, shapes and units. A segment is a track of a slice."""

import numpy as np

from hltnode.processing.alice.tpc.collections import (
    COVARIANCE,
    clusters,
    first_of_event,
    track_clusters,
    tracks,
)
from hltnode.processing.framework.collections import F32, U8, U16, U32, Collection, Placement, Record, Role, SharedTypes

SLOPE_BINS, DIRECTION_BINS = 64, 64
"""Bins of segments: |pz / pT|, and the axis of the helix."""
DIRECTION_REACH = 5
SLOPE_REACH = 2
"""Bins of the axis and of |pz / pT| on each side in which segments of the same helix are searched."""
SEGMENT_BINS = SLOPE_BINS * DIRECTION_BINS
MAX_SEGMENTS = 32
"""Segments of a merged track. A particle that turns three times in the TPC has up to 30."""
NO_END = 0xFFFFFFFF
CELL_SIZE, CELLS_OF_AXIS = 20, 16
"""cm of the cubes in which free ends are searched, and cubes along each axis. Places 320 cm apart share a cube."""
FREE_CELLS = CELLS_OF_AXIS**3
MAX_FREE_ENDS = 4096
"""Free ends in the 27 cubes around one that a search compares. One of 4.3 million
clusters has up to 1,037 there, 656 on average."""
MAX_CUT_SEGMENTS = 128
"""Longer chains are not cut."""
MERGING_PARTS = 36
"""Blocks for each event; they share its segments."""

SEGMENT_END = Record(
    "tpc_segment_end",
    np.dtype(
        [
            (name, "<f4")
            for name in (
                *("x", "y", "z", "along_x", "along_y", "curvature", "slope"),
                *("dd", "df", "ff", "dk", "fk", "kk", "zz", "lz", "ll"),
            )
        ]
    ),
    {
        "x": "global frame, cm, as y and z",
        "along_x": "direction out of the segment, of length 1",
        "curvature": "of the way out, 1/cm; positive ones turn to the left",
        "slope": "change of z for each cm of the way out",
        "dd": "covariance: d = distance to the left, f = angle, k = curvature, z, l = slope; other terms are 0",
    },
)
MERGED_TRACK = Record(
    "tpc_merged_track",
    np.dtype(
        [
            *((name, "<f4") for name in ("x", "y", "z", "sin_phi", "tan_lambda", "q_pt", *COVARIANCE, "chi2")),
            ("charge", "<u4"),
            ("slice", "<u2"),
            ("n_clusters", "<u2"),
            ("n_fitted", "<u2"),
            ("n_segments", "<u2"),
        ]
    ),
    {
        "x": "of the innermost cluster of the fit, cm; y and z: of the track there, as in tpc_track",
        "charge": "sum of its clusters, ADC counts",
        "slice": "in whose frame the parameters are",
        "n_clusters": "those of all segments; one that two segments share counts once",
        "n_fitted": "clusters that the fit took",
    },
)

TRACK_HIT = Record(
    "tpc_track_hit",
    np.dtype([("place", "<u4"), ("charge", "<u2"), ("row", "u1"), ("unused", "u1")]),
    {"place": "z in the upper 16 bits, y in the lower ones, as in the banks", "charge": "ADC counts"},
)

FREE_END = Record(
    "tpc_free_end",
    np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("end", "<u4")]),
    {"x": "place of the end, cm, as y and z", "end": "2 * segment + (0: inner, 1: outer)"},
)

tpc_merging_types = SharedTypes(
    __file__,
    "tpc_merging_types",
    records=(SEGMENT_END, MERGED_TRACK, TRACK_HIT, FREE_END),
    sizes={
        "tpc_slope_bins": SLOPE_BINS,
        "tpc_direction_bins": DIRECTION_BINS,
        "tpc_direction_reach": DIRECTION_REACH,
        "tpc_slope_reach": SLOPE_REACH,
        "tpc_segment_bins": SEGMENT_BINS,
        "tpc_cell_size": CELL_SIZE,
        "tpc_cells_of_axis": CELLS_OF_AXIS,
        "tpc_free_cells": FREE_CELLS,
        "tpc_max_free_ends": MAX_FREE_ENDS,
        "tpc_max_cut_segments": MAX_CUT_SEGMENTS,
        "tpc_max_segments": MAX_SEGMENTS,
        "tpc_no_end": NO_END,
        "tpc_merging_parts": MERGING_PARTS,
    },
)

event_clusters = Collection(
    "tpc_event_clusters", capacity=clusters.capacity, placement=Placement(offsets=first_of_event)
)
"""Clusters of an event by their numbers."""
cluster_place = event_clusters.column("place", U32)
cluster_row = event_clusters.column("row", U8)
"""Those of clusters in the grid; others are not written."""

track_hit = track_clusters.column("hit", TRACK_HIT)
"""The clusters of all tracks, in their order: a fit reads them one after the other, where those of the event lie far
apart."""
segment_first_hit = tracks.column("first_hit", U32)
"""Place of the first cluster of each segment among those of its event."""
inner_end = tracks.column("inner", SEGMENT_END)
outer_end = tracks.column("outer", SEGMENT_END)
"""An outer end without direction: there is none."""
segment_rows = tracks.column("rows", U8, width=2)
"""Rows of the first and the last cluster."""
segment_bin = tracks.column("bin", U16)
sorted_segments = tracks.column("sorted", U32)
"""Numbers of the segments, by bins."""
near_slope = tracks.column("near_slope", F32, width=2)
near_curvature = tracks.column("near_curvature", F32, width=2)
near_slope_variance = tracks.column("near_slope_variance", F32, width=2)
near_curvature_variance = tracks.column("near_curvature_variance", F32, width=2)
"""Slopes and curvatures of the ends (0: inner, 1: outer) of the segments, by bins: the search for links reads only
these of most ends."""
longer_segment = tracks.column("longer", U32)
"""The segment of which this one may be a clone."""
shorter_segment = tracks.column("shorter", U32)
"""The first segment of which this one is the longer one."""
best_end = tracks.column("best_end", U32, width=2)
"""The end that continues each end best: 2 * segment + (0: inner, 1: outer)."""
free_end = tracks.column("free_end", FREE_END, width=2)
"""Ends without a link and with a direction, by cells."""
free_number = tracks.column("free_number", U32, width=2)
"""Their numbers: 2 * segment + (0: inner, 1: outer)."""
cell_begins = tracks.per_event("cell_begins", U32, width=FREE_CELLS + 1)
insertion = tracks.column("insertion", U32, width=2)
"""For each end of a link, the end of the segment without links that follows it best: 2 * segment + (0: inner, 1:
outer)."""
insertion_key = tracks.column("insertion_key", U32, width=2)
"""How far that segment is beside the helix: sum of squares in units of the limits and of 2^-28."""
claimed_key = tracks.column("claimed_key", U32)
claimed_by = tracks.column("claimed_by", U32)
"""The least insertion_key of the ends that a segment may follow, and the first of these ends."""
weakest_link = tracks.column("weakest_link", U32)
"""An end of the link at which a chain that is too long is cut, for its first segment."""
turn_score = tracks.column("turn_score", F32)
turn_chain = tracks.column("turn_chain", U32)
"""The chain on the helix of a segment that is not its own, by the number of its first segment, and how well it fits."""
bin_begins = tracks.per_event("bin_begins", U32, width=SEGMENT_BINS + 1)

merged_tracks = Collection("tpc_merged_tracks", capacity=tracks.capacity, placement=tracks.placement)
merged_track = merged_tracks.column("track", MERGED_TRACK)
merged_track_count = merged_tracks.per_event("count", U32, role=Role.OUTPUT)
merged_first_segment = merged_tracks.column("first_segment", U32)
merged_size = merged_tracks.column("size", U16)
"""Segments of each merged track."""
merged_run = merged_tracks.column("run", U16)
"""Segments of the first way through the TPC, outwards or inwards; they come first."""
merged_particle = merged_tracks.column("particle", U8)
"""The particle that the fit assumes: 0 pion, 1 kaon, 2 proton."""
merged_ionisation = merged_tracks.column("ionisation", F32)
"""Truncated mean of the charges per cm, relative to a minimum ionising particle."""
merged_segments = Collection("tpc_merged_segments", capacity=tracks.capacity, placement=tracks.placement)
merged_segment = merged_segments.column("segment", U32)
"""Numbers of the segments of each merged track among the tracks of the event, in the order of flight."""
merged_segment_count = merged_segments.per_event("count", U32)
