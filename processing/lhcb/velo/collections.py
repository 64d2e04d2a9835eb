"""The collections of the VELO chain: clusters, hits, seeds and tracks, with their bounds, shapes and units."""

from enum import IntEnum

import numpy as np

from hltnode.processing.framework.collections import (
    F32,
    I16,
    U8,
    U16,
    U32,
    Collection,
    Column,
    Placement,
    Record,
    Role,
    SharedTypes,
    constant_column,
)
from hltnode.processing.framework.declaration import LargeEvents
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.geometry.ideal_velo import N_COLUMNS, N_MODULES, N_ROWS, N_SENSORS, PIXEL_PITCH
from hltnode.processing.lhcb.geometry.velo import MASK_WORDS
from hltnode.processing.lhcb.readout import version_sizes
from hltnode.protocol.lhcb.bank_versions import VeloVersion

N_MODULE_PAIRS = N_MODULES // 2
PHI_BIN_BITS = 7
N_PHI_BINS = N_MODULE_PAIRS << PHI_BIN_BITS
PHI_BIN_STRIDE = N_PHI_BINS + 8
MAX_HITS_PER_TRACK = N_MODULE_PAIRS
"""One in each module pair."""
MAX_CLUSTERS_PER_EVENT = 65535
HIT_PADDING = 8
NO_PV = 255
NO_MODULE_PAIR = 255
N_RETINA_KEYS = 1 << 10
"""Six bits for the number of a pattern, two for each fraction."""


class RetinaPattern(IntEnum):
    """The patterns whose number a retina word holds: an isolated super-pixel, or a square of 3 x 3 pixels from the
    corner of the smallest row and column, or from that of the largest column (sensors 1 and 2 of a module)."""

    RETINA_ISOLATED = 0
    RETINA_SQUARE = 1
    RETINA_SQUARE_REVERSED = 2


class SeedFate(IntEnum):
    """The result for the three hits of a seed: not a track, part of a longer track, or a three-hit track."""

    SEED_LEFT = 0
    SEED_EXTENDED = 1
    SEED_ACCEPTED = 2


VELO_GEOMETRY = Record(
    "velo_geometry",
    np.dtype(
        [
            ("module_z", "<f4", (N_MODULES,)),
            ("local_x", "<f4", (N_COLUMNS,)),
            ("x_pitch", "<f4", (N_COLUMNS,)),
            ("local_to_global", "<f4", (N_SENSORS, 12)),
            ("beamline_x", "<f4"),
            ("beamline_y", "<f4"),
            ("beamline_slope_x", "<f4"),
            ("beamline_slope_y", "<f4"),
            ("n_masked_asics", "<u4"),
            ("masked_asics", "<u4", (MASK_WORDS,)),
        ]
    ),
    {
        "module_z": "mm",
        "local_x": "mm, centre of the column",
        "x_pitch": "mm, wider at the chip borders",
        "local_to_global": "rotation row-major, then translation in mm",
        "beamline_x": "mm, at z = 0",
        "beamline_y": "mm, at z = 0",
        "beamline_slope_x": "dx/dz",
        "beamline_slope_y": "dy/dz",
        "masked_asics": "bit 4 s + a: ASIC a of sensor s",
    },
)
"""The geometry for kernels: VeloGeometry.to_bytes()."""

velo_types = SharedTypes(
    __file__,
    "velo_types",
    records=(VELO_GEOMETRY,),
    enums={"seed_fate": SeedFate, "retina_pattern": RetinaPattern},
    sizes={
        **version_sizes("velo", VeloVersion),
        "n_velo_modules": N_MODULES,
        "n_velo_module_pairs": N_MODULE_PAIRS,
        "n_velo_sensors": N_SENSORS,
        "n_velo_columns": N_COLUMNS,
        "n_velo_rows": N_ROWS,
        "velo_pixel_pitch": PIXEL_PITCH,
        "phi_bin_bits": PHI_BIN_BITS,
        "n_phi_bins": N_PHI_BINS,
        "phi_bin_stride": PHI_BIN_STRIDE,
        "max_velo_track_hits": MAX_HITS_PER_TRACK,
        "max_velo_clusters_of_event": MAX_CLUSTERS_PER_EVENT,
        "velo_hit_padding": HIT_PADDING,
        "no_module_pair": NO_MODULE_PAIR,
        "no_pv": NO_PV,
        "n_retina_keys": N_RETINA_KEYS,
    },
)
"""Hits of an event are numbered with 16 bits. velo_hit_padding free places follow the hits of each event. Kernels may
load these places of a column but must ignore the values; in their own scratch they may use them.
no_module_pair marks a place without a hit: a filler word, or a column that does not exist. velo_pixel_pitch is in
mm."""

velo_geometry = constant_column("velo_geometry", VELO_GEOMETRY)
retina_sizes = constant_column("retina_sizes", U8, lambda _: len(RetinaPattern) * N_RETINA_KEYS)
"""retina_size_table()."""


def max_clusters(limits: BatchLimits) -> int:
    """A retina cluster takes 4 bytes; a super-pixel takes 4 bytes and holds 1.0 clusters on average."""
    return limits.input_bytes // 4


cluster_offset = Column(
    name="velo_clusters.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True
)
"""Prefix sum of `bound`, with 8 free places behind each event that has clusters."""

_BY_CLUSTER = Placement(offsets=cluster_offset)
_MOST = MAX_CLUSTERS_PER_EVENT + HIT_PADDING


def _like_clusters(name: str) -> Collection:
    return Collection(name, capacity=max_clusters, placement=_BY_CLUSTER, max_per_event=_MOST)


clusters = _like_clusters("velo_clusters")
cluster_bound = clusters.per_event("bound", U32)
"""Upper bound of the clusters of each event, from the sizes of its banks."""
super_pixel_bound = clusters.per_event("super_pixel_bound", U32)
"""The part of `bound` that comes from super-pixels; the rest comes from retina clusters."""
cluster_count = clusters.per_event("count", U32, role=Role.OUTPUT)

large_events = LargeEvents(cluster_bound, min_size=4000, block_size=256)
"""With the usual block size, such an event takes several times as long as a mean minimum-bias event of 1,700
clusters."""

unsorted = _like_clusters("velo_unsorted")
unsorted_module_pair = unsorted.column("module_pair", U8)
unsorted_columns = (
    unsorted.column("x", F32),
    unsorted.column("y", F32),
    unsorted.column("z", F32),
    unsorted.column("phi", I16),
    unsorted.column("id", U32),
    unsorted_module_pair,
    unsorted.per_event("count", U32),
)
"""Hits in the order of the decoders, retina clusters first, then clusters of super-pixels; `count` places are used.
`module_pair` is 0 to 25, or NO_MODULE_PAIR for a place without a hit."""

hits = _like_clusters("velo_hits")
hit_x = hits.column("x", F32)
hit_y = hits.column("y", F32)
hit_z = hits.column("z", F32)
"""mm, sorted by phi inside each module pair."""
hit_phi = hits.column("phi", I16)
"""atan2(y, x) * 2^15 / pi, wraps as int16."""
hit_id = hits.column("id", U32)
"""LHCbID: 2 << 28 | orfx << 27 | orfy << 26 | sensor << 18 | chip << 16 | column << 8 | row."""
hit_pixels = hits.column("pixels", U8)
"""Number of pixels of its cluster, where velo_large_clusters has counted them; otherwise 0."""
hit_used = hits.column("used", U32)
"""1 for a hit that the search put on a track of four hits or more. velo_extend_downstream does not mark its hits."""
module_pair_offset = hits.per_event("module_pair_offset", U32, width=N_MODULE_PAIRS + 1)
"""[event][27]: hits of module pair m of an event are [m] .. [m + 1], relative to the first cluster of the event."""
phi_bin_offset = hits.per_event("phi_bin_offset", U16, width=PHI_BIN_STRIDE)
"""[event][26 * 128 + 8]: hits of bin b are [b] .. [b + 1], relative to the first cluster of the event. The last seven
values are unused padding: the row of each event begins at a multiple of 16 bytes."""

seeds = _like_clusters("velo_seeds")
seed_hits = seeds.column("hits", U16, width=4)
"""[seed][4]: hits of a triplet from large to small z, then its SeedFate."""
seed_count = seeds.per_event("count", U32)

tracks = Collection(
    "velo_tracks",
    capacity=lambda limits: max_clusters(limits) // 2,
    placement=Placement(offsets=cluster_offset, divisor=2),
    max_per_event=_MOST // 2 + 1,
)
"""A track has at least three clusters; an event has half as many places for tracks as clusters."""
candidate_count = tracks.per_event("candidate_count", U32)
"""Number of tracks with four hits or more, before clones are killed."""
track_count = tracks.per_event("count", U32, role=Role.OUTPUT)
track_hit_count = tracks.column("hit_count", U8)
track_hits = tracks.column("hits", U16, width=MAX_HITS_PER_TRACK)
"""[track][26]: hits from large to small z, relative to the first cluster of the event."""
track_backward = tracks.column("backward", U8)
"""1 where the track flies towards negative z."""
track_large_clusters = tracks.column("large_clusters", U8)
"""Number of its hits with large clusters; 0 for tracks that velo_large_clusters does not count."""
track_ip = tracks.column("ip", F32)
"""Impact parameter in mm, the smallest to any primary vertex; 0 without a vertex."""
track_ip_chi2 = tracks.column("ip_chi2", F32)
"""Impact parameter chi2 to the same vertex; 0 without a vertex."""
track_pv = tracks.column("pv", U8)
"""Index of the same vertex in the event, or NO_PV."""


def _states(name: str, *fields: str) -> dict[str, Column]:
    collection = Collection(
        name, capacity=tracks.capacity, placement=tracks.placement, max_per_event=tracks.max_per_event
    )
    return {field: collection.column(field, F32) for field in fields}


# x and y have equal covariances, so one set is stored for both: c00 = var(x) in mm², c20 = cov(x, tx) in mm,
# c22 = var(tx).
beamline_state = _states("velo_beamline", "x", "y", "z", "tx", "ty", "c00", "c20", "c22")
"""The state of each track closest to the beam line; mm and slopes."""
end_state = _states("velo_end", "x", "y", "tx", "ty", "c00", "c20", "c22")
"""The state of each track at z = 770 mm."""
