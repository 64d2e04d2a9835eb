"""Clusters, seeds and tracks of each slice: bounds, shapes and units.

A slice has as many places for each kind of object as its clusters allow, so the result of an event does not depend on
the other events of its batch.
"""

import math

import numpy as np

from hltnode.processing.alice.detector_constants import SLICE_ANGLE
from hltnode.processing.alice.geometry.tpc_geometry import GEOMETRY_FLOATS, NUMBERS_AFTER_ROWS
from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import (
    F32,
    U16,
    U32,
    Collection,
    Placement,
    Record,
    Role,
    SharedTypes,
    constant_column,
)
from hltnode.processing.framework.limits import BatchLimits
from hltnode.protocol.alice.tpc_banks import (
    CHAMBERS_OF_SLICE,
    CLUSTER,
    N_ROWS,
    N_SLICES,
    SOURCES_OF_SLICE,
    TPC_SUBDETECTOR,
    TPC_VERSION,
    Y_OFFSET,
    Y_STEP,
    Z_START,
    Z_STEP,
    TpcBankType,
)

MAX_SLICE_CLUSTERS = SOURCES_OF_SLICE * (0xFFFF // CLUSTER.itemsize)
"""All banks of a slice, of 65,535 bytes each."""
HALF_WIDTH_OVER_X = math.tan(SLICE_ANGLE / 2.0)
"""The border of a slice at x is this number times x away from its middle."""
BORDER_TOLERANCE = 2.0
"""cm: a cluster farther beyond the border of its slice is not used. It would widen the bins of its chamber; the
simulation has none beyond the border."""
MAX_WINDOW = 128
"""Clusters that the finder of neighbours takes from one window. Those of a central event have 12 in the mean, at most
116; clusters that all lie in one place would cost the cube of their number."""
MAX_READ = 4 * MAX_WINDOW
"""Clusters that the search of a window reads from one row: those of the bins that the window touches."""
MAX_NEAREST = 256
"""Clusters of the four bins around a track that the search for the nearest one takes."""
MIN_SEED = 4
"""Fewest clusters of a seed that a configuration can set: a slice has one place for a seed for each 4 clusters."""
SPARE_PAIRS = 8
"""Pairs of clusters beyond its own for which a slice has places in tracks."""
CLUSTERS_PER_TRACK = 16
"""A slice has one place for a track for this number of clusters, and one more."""
CLUSTERS_PER_PARKED = 16
"""A slice has one place for a parked tracklet for this number of clusters, and one more. The slices of simulated lead
collisions of 1.1 and 4.2 million clusters (seed 1) have one seed for 17 to 20 clusters."""
ROW_BLOCK = 40
"""Rows of one launch of the constructor by blocks of rows: the best number in the thesis, section 6.2.2.5."""
ROW_BLOCKS = -(-N_ROWS // ROW_BLOCK)

SLICE_INPUT = Record(
    "tpc_slice_input",
    np.dtype([("first_row", "<u4"), ("n_rows", "<u4"), ("first_cluster", "<u4"), ("n_clusters", "<u4")]),
    {
        "first_row": "the first of its MFPs in the batch",
        "n_rows": "its MFPs",
        "first_cluster": "number of its first cluster in the event",
        "n_clusters": "clusters of its banks",
    },
)
BOX = Record(
    "tpc_box",
    np.dtype([("y_min", "<u2"), ("y_max", "<u2"), ("z_min", "<u2"), ("z_max", "<u2")]),
    {"y_min": "coordinates as in the banks"},
)
COVARIANCE = ("c_yy", "c_zz", "c_sy", "c_ss", "c_lz", "c_ll", "c_qy", "c_qs", "c_qq")
TRACK = Record(
    "tpc_track",
    np.dtype(
        [
            *((name, "<f4") for name in ("x", "y", "z", "sin_phi", "tan_lambda", "q_pt", *COVARIANCE, "chi2")),
            ("charge", "<u4"),
            ("slice", "<u2"),
            ("n_clusters", "<u2"),
        ]
    ),
    {
        "charge": "sum of its clusters, ADC counts",
        "x": "of the innermost cluster, cm; y and z: of the track there, slice frame, z as in the global frame",
        "sin_phi": "angle of the transverse momentum to the x axis of the slice",
        "tan_lambda": "pz / pT",
        "q_pt": "c/GeV",
        "c_yy": "covariance: y, z, s = sin_phi, l = tan_lambda, q = q_pt; other terms are 0",
    },
)

tpc_types = SharedTypes(
    __file__,
    "tpc_types",
    records=(SLICE_INPUT, BOX, TRACK),
    sizes={
        "tpc_subdetector": TPC_SUBDETECTOR,
        "tpc_version": TPC_VERSION,
        "tpc_clusters_bank": int(TpcBankType.CLUSTERS),
        "tpc_sources_of_slice": SOURCES_OF_SLICE,
        "tpc_slices": N_SLICES,
        "tpc_rows": N_ROWS,
        "tpc_chambers": CHAMBERS_OF_SLICE,
        "tpc_cluster_bytes": CLUSTER.itemsize,
        "tpc_max_slice_clusters": MAX_SLICE_CLUSTERS,
        "tpc_y_step": Y_STEP,
        "tpc_y_offset": Y_OFFSET,
        "tpc_z_step": Z_STEP,
        "tpc_half_width_over_x": HALF_WIDTH_OVER_X,
        "tpc_border_tolerance": BORDER_TOLERANCE,
        "tpc_z_start": Z_START,
        "tpc_no_cluster": 0xFFFF,
        "tpc_max_window": MAX_WINDOW,
        "tpc_max_read": MAX_READ,
        "tpc_max_nearest": MAX_NEAREST,
        "tpc_numbers_after_rows": NUMBERS_AFTER_ROWS,
        "tpc_clusters_per_track": CLUSTERS_PER_TRACK,
        "tpc_row_block": ROW_BLOCK,
        "tpc_row_blocks": ROW_BLOCKS,
    },
)


def _slices(limits: BatchLimits) -> int:
    return limits.events * N_SLICES


def _clusters(limits: BatchLimits) -> int:
    return limits.input_bytes // CLUSTER.itemsize


geometry = constant_column("tpc.geometry", F32, lambda _: GEOMETRY_FLOATS)
"""x of the rows, half length, the three numbers of the field, lengths of pads (TpcGeometry.as_floats)."""
event_number = events.per_event("number", U32, width=2)
"""[event][2]: low and high word of the number of the event in its run."""

slices = Collection("tpc_slices", capacity=_slices, placement=Placement.fixed(1), parts=N_SLICES)
slice_input = slices.per_part("input", SLICE_INPUT)
slice_first = slices.per_part("first_cluster", U32, extra=1)
"""Place of the first cluster of each slice in the batch."""
row_counts = slices.per_part("row_counts", U16, width=N_ROWS)
boxes = slices.per_part("boxes", BOX, width=CHAMBERS_OF_SLICE)
"""Smallest box around the clusters of each chamber."""
start_count = slices.per_part("start_hits", U32)
tracklet_count = slices.per_part("tracklets", U32)
"""Tracklets with enough clusters."""
slice_track_count = slices.per_part("tracks", U32)
slice_hit_count = slices.per_part("track_clusters", U32)

clusters = Collection(
    "tpc_clusters",
    capacity=_clusters,
    placement=Placement(offsets=slice_first),
    parts=N_SLICES,
    max_per_part=MAX_SLICE_CLUSTERS,
)
"""Clusters of a slice by row, then by bin, then by z and y."""
cluster_places = clusters.column("places", U32)
"""z in the upper 16 bits, y in the lower ones, as in the banks."""
cluster_charges = clusters.column("charges", U16)
"""ADC counts of each cluster of the slice, in the order of the input."""
cluster_inputs = clusters.column("inputs", U32)
"""Number of the cluster in the event: banks in the order of their sources, clusters in that of the bank."""
link_up = clusters.column("up", U16)
link_down = clusters.column("down", U16)
"""Number in its row of the best neighbour two rows above or below."""
next_cluster = clusters.column("next", U16)
"""The link up, if it is mutual."""
weights = clusters.column("weights", U32)
"""Clusters of the longest tracklet on this cluster in the upper 16 bits, its number in the lower ones."""

bins = Collection(
    "tpc_bins",
    capacity=lambda limits: _clusters(limits) + _slices(limits) * (N_ROWS + 3),
    placement=Placement(offsets=slice_first, divisor=2, per_event=(N_ROWS + 3) // 2, times=2),
    parts=N_SLICES,
    max_per_part=MAX_SLICE_CLUSTERS + N_ROWS + 3,
)
"""A row of n clusters has up to n bins, and one place more. Those of a slice begin at an even number: 16-bit words are
counted in pairs."""
first_in_bin = bins.column("begin", U16)
"""Number in its row of the first cluster of each bin; behind the last bin the number of clusters."""

start_hits = Collection(
    "tpc_start_hits",
    capacity=lambda limits: _clusters(limits) // MIN_SEED,
    placement=Placement(offsets=slice_first, divisor=MIN_SEED),
    parts=N_SLICES,
    max_per_part=MAX_SLICE_CLUSTERS // MIN_SEED + 1,
)
start_hit = start_hits.column("cluster", U32)
"""Row in the upper 16 bits, number in the row in the lower ones."""
owned_clusters = start_hits.column("owned", U32)
"""Clusters whose longest tracklet is that of the start hit."""

parked = Collection(
    "tpc_parked",
    capacity=lambda limits: _clusters(limits) // CLUSTERS_PER_PARKED + _slices(limits),
    placement=Placement(offsets=slice_first, divisor=CLUSTERS_PER_PARKED, per_event=1),
    parts=N_SLICES,
    max_per_part=MAX_SLICE_CLUSTERS // CLUSTERS_PER_PARKED + 2,
)
"""Tracklets between two launches of the constructor by blocks of rows: those of the first start hits of a slice."""
parked_at = parked.column("at", U16)
"""Row of the next step in the lower 8 bits, tracklet_stage in the upper ones (tracklet.cuh)."""
parked_state = parked.column("state", F32, width=16)
"""tpc_state (track_model.cuh)."""
parked_steps = parked.column("steps", U16, width=8)
"""Other numbers of tracklet_progress (tracklet.cuh)."""
parked_rows = parked.column("rows", U16, width=N_ROWS)
"""[row][tracklet] of each slice: number of the cluster."""

slice_tracks = Collection(
    "tpc_slice_tracks",
    capacity=lambda limits: _clusters(limits) // CLUSTERS_PER_TRACK + _slices(limits),
    placement=Placement(offsets=slice_first, divisor=CLUSTERS_PER_TRACK, per_event=1),
    parts=N_SLICES,
    max_per_part=MAX_SLICE_CLUSTERS // CLUSTERS_PER_TRACK + 2,
)
slice_track = slice_tracks.column("track", TRACK)
slice_hits = Collection(
    "tpc_slice_hits",
    capacity=lambda limits: (_clusters(limits) // 2 + _slices(limits) * SPARE_PAIRS) * 3,
    placement=Placement(offsets=slice_first, divisor=2, per_event=SPARE_PAIRS, times=3),
    parts=N_SLICES,
    max_per_part=(MAX_SLICE_CLUSTERS // 2 + 1 + SPARE_PAIRS) * 3,
)
"""Clusters of the tracks of a slice, track by track, rows upwards. Tracks may share clusters: there are three places
for two clusters of the slice, and some more."""
slice_hit = slice_hits.column("cluster", U32)
"""cluster_inputs."""

first_of_event = events.per_event("first_cluster", U32, extra=1)
"""Place of the first cluster of each event in the batch."""
all_clusters = Collection("all_tpc_clusters", capacity=lambda limits: limits.events)
cluster_count = all_clusters.per_event("count", U32, role=Role.OUTPUT)
tracklets = Collection("tpc_tracklets", capacity=lambda limits: limits.events)
all_tracklet_count = tracklets.per_event("count", U32, role=Role.OUTPUT)
"""Tracklets with enough clusters."""
tracks = Collection(
    "tpc_tracks",
    capacity=lambda limits: _clusters(limits) // CLUSTERS_PER_TRACK + _slices(limits),
    placement=Placement(offsets=first_of_event, divisor=CLUSTERS_PER_TRACK, per_event=N_SLICES),
)
track_count = tracks.per_event("count", U32, role=Role.OUTPUT)
track = tracks.column("track", TRACK)
track_clusters = Collection(
    "tpc_track_clusters",
    capacity=slice_hits.capacity,
    placement=Placement(offsets=first_of_event, divisor=2, per_event=SPARE_PAIRS * N_SLICES, times=3),
)
track_cluster_count = track_clusters.per_event("count", U32)
track_cluster = track_clusters.column("cluster", U32)
