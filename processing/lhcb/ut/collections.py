"""The collections of the UT: hits by sector group, and VELO-UT tracks, with their bounds, shapes and units."""

import numpy as np

from hltnode.processing.framework.collections import (
    F32,
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
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.geometry.ideal_ut import N_LAYERS, N_SECTORS
from hltnode.processing.lhcb.geometry.ut_groups import (
    BACKWARDS,
    DESCENDING,
    MAX_GROUPS,
    N_X_BINS,
    N_Y_BINS,
    NO_SECTOR,
    X_BIN,
    X_HALF,
    Y_BIN,
    Y_HALF,
)
from hltnode.processing.lhcb.geometry.ut_tables import (
    MAX_ORIGIN,
    MAX_TY,
    N_ABS_TY,
    N_ORIGIN,
    N_TY,
    Z_MID_UT,
    Z_VELO_END,
)
from hltnode.processing.lhcb.readout import version_sizes
from hltnode.processing.lhcb.velo.collections import tracks as velo_tracks
from hltnode.protocol.lhcb.bank_versions import UtVersion
from hltnode.protocol.lhcb.banks.ut import N_BOARDS, N_LANES, N_STRIPS

GROUP_STRIDE = MAX_GROUPS + 1
"""Sector groups of all layers: sectors of equal x in one layer. The real detector has 84."""
SECTOR_STRIDE = (N_SECTORS + 8) // 8 * 8
N_BINS_OF_LAYER = 256
"""Bins of x at y = 0."""
N_BINS = N_LAYERS * N_BINS_OF_LAYER
MAX_HITS_PER_EVENT = 65535
HIT_PADDING = 8
MAX_TRACKS_PER_EVENT = 1024
NO_HIT = 0xFFFF
NO_TRACK = 0xFFFF

UT_STRIPS = Record(
    "ut_strips",
    np.dtype([(name, "<f4") for name in ("x", "y", "z", "dx", "dy", "dz", "height", "weight")]),
    {
        "x": "mm, of the first strip at y = 0",
        "y": "mm, of the first end of the first strip",
        "z": "mm, of the first strip",
        "dx": "mm, from strip to strip",
        "height": "mm, from the first end to the other one",
        "weight": "12 / pitch^2, 1/mm^2",
    },
)
"""The strips of a sector."""
UT_INTERVAL = Record("ut_interval", np.dtype([("low", "<f4"), ("high", "<f4")]))
UT_SECTOR_RANGE = Record("ut_sector_range", np.dtype([("first", "u1"), ("end", "u1")]))
UT_GEOMETRY = Record(
    "ut_geometry",
    np.dtype(
        [
            ("strips", UT_STRIPS.dtype, (N_SECTORS,)),
            ("group_x", UT_INTERVAL.dtype, (MAX_GROUPS,)),
            ("layer_z", "<f4", (N_LAYERS,)),
            ("layer_depth", "<f4", (N_LAYERS,)),
            ("dx_dy", "<f4", (N_LAYERS,)),
            ("channel", "<u4", (N_SECTORS,)),
            ("numbering", "<u4", (N_SECTORS,)),
            ("first_group", "<u4", (N_LAYERS,)),
            ("n_groups", "<u4"),
            ("first_sector", "<u2", (GROUP_STRIDE,)),
            ("sector_of_lane", "<u2", (N_BOARDS * N_LANES,)),
            ("group_of_x", "u1", (N_LAYERS, N_X_BINS)),
            ("sectors_of_y", UT_SECTOR_RANGE.dtype, (MAX_GROUPS, N_Y_BINS)),
        ]
    ),
    {
        "group_x": "mm at y = 0, on all strips",
        "layer_z": "mm, the middle",
        "layer_depth": "mm, largest distance of sectors from the middle",
        "dx_dy": "of the strips",
        "channel": "LHCbID of the first strip",
        "numbering": "number of the first strip, ut_backwards, ut_descending",
        "first_group": "of each layer",
        "first_sector": "of each group, then the end of the last one",
        "sector_of_lane": "or no_ut_sector",
        "group_of_x": "first group beyond the lower edge of each bin",
        "sectors_of_y": "sectors that overlap each bin, counted in their group",
    },
)
"""The UT for kernels, sectors in the order of hits: UtSectorGroups.to_bytes()."""
UT_TABLES = Record(
    "ut_tables",
    np.dtype(
        [
            ("layer_deflection", "<f4", (N_ABS_TY + 1, N_LAYERS)),
            ("bending_power", "<f4", (N_ORIGIN + 1, N_TY + 1)),
            ("polarity", "<f4"),
        ]
    ),
    {
        "layer_deflection": "displacement at the middle of the UT over that at each layer, by |ty|",
        "bending_power": "T m from the end of the VELO to the middle of the UT, by z of the origin and ty",
        "polarity": "-1 down, 1 up",
    },
)
"""UtTables.to_bytes()."""

ut_types = SharedTypes(
    __file__,
    "ut_types",
    records=(UT_STRIPS, UT_INTERVAL, UT_SECTOR_RANGE, UT_GEOMETRY, UT_TABLES),
    sizes={
        **version_sizes("ut", UtVersion),
        "n_ut_boards": N_BOARDS,
        "n_ut_lanes": N_LANES,
        "n_ut_strips": N_STRIPS,
        "n_ut_sectors": N_SECTORS,
        "ut_sector_stride": SECTOR_STRIDE,
        "no_ut_sector": NO_SECTOR,
        "ut_backwards": BACKWARDS,
        "ut_descending": DESCENDING,
        "n_ut_x_bins": N_X_BINS,
        "ut_x_bin": X_BIN,
        "ut_x_half": X_HALF,
        "n_ut_y_bins": N_Y_BINS,
        "ut_y_bin": Y_BIN,
        "ut_y_half": Y_HALF,
        "z_velo_end": Z_VELO_END,
        "ut_middle_z": Z_MID_UT,
        "n_ut_ty_steps": N_ABS_TY,
        "n_ut_origin_bins": N_ORIGIN,
        "ut_max_origin": MAX_ORIGIN,
        "n_ut_ty_bins": N_TY,
        "ut_max_ty": MAX_TY,
        "n_ut_layers": N_LAYERS,
        "n_ut_bins": N_BINS_OF_LAYER,
        "n_all_ut_bins": N_BINS,
        "max_ut_groups": MAX_GROUPS,
        "ut_group_stride": GROUP_STRIDE,
        "max_ut_hits_of_event": MAX_HITS_PER_EVENT,
        "ut_hit_padding": HIT_PADDING,
        "max_ut_tracks": MAX_TRACKS_PER_EVENT,
        "no_ut_hit": NO_HIT,
        "no_ut_track": NO_TRACK,
    },
)
"""Hits of an event are numbered with 16 bits from its first one; no_ut_hit and no_ut_track mark a missing hit or track.
ut_hit_padding free places follow the hits of each event. ut_backwards: the strips of a sector are counted from the
other end; ut_descending: the order of hits is opposite to that of the strips. Lengths in mm."""

ut_geometry = constant_column("ut_geometry", UT_GEOMETRY)
ut_tables = constant_column("ut_tables", UT_TABLES)


def max_hits(limits: BatchLimits) -> int:
    """With only the tracking detectors in the input, minimum-bias events have a UT hit in 24 bytes on average, and in
    17 bytes at most. An event that does not fit is flagged and kept."""
    return limits.input_bytes // 16


ut_hit_offset = Column(name="ut_hits.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)
"""Prefix sum of the places of each event."""

ut_hits = Collection(
    "ut_hits",
    capacity=max_hits,
    placement=Placement(offsets=ut_hit_offset),
    max_per_event=MAX_HITS_PER_EVENT + HIT_PADDING,
)
ut_bound = ut_hits.per_event("bound", U32)
"""Number of hits of each event, before the decoding; 0 for an event that is cut or does not fit."""
ut_count = ut_hits.per_event("count", U32, role=Role.OUTPUT)
ut_group_offset = ut_hits.per_event("group_offset", U16, width=GROUP_STRIDE)
"""[event][128]: hits of sector group g (numbered over all layers) of an event are [g] .. [g + 1], relative to its first
hit; entries behind the last group are the count."""
ut_sector_offset = ut_hits.per_event("sector_offset", U16, width=SECTOR_STRIDE)
"""[event][1056]: the same for sectors, in the order of ut_geometry."""
ut_x = ut_hits.column("x", F32)
ut_z = ut_hits.column("z", F32)
"""mm at y = 0."""
ut_y_begin = ut_hits.column("y_begin", F32)
ut_y_end = ut_hits.column("y_end", F32)
"""mm, y_begin < y_end; inside a group hits ascend by sector, y_begin (x where strips are parallel to y), strip."""
ut_weight = ut_hits.column("weight", F32)
"""12 / pitch² (1/mm²)."""
ut_id = ut_hits.column("id", U32)
"""LHCbID: 3 << 28 | channel id."""

ut_bin_begin = ut_hits.per_event("bin_begin", U32, width=N_BINS + 1)
"""[event][1025]: places of the hits of each bin of x, layer by layer, in the order of bins; of events with SciFi seeds,
as the other columns of this order."""
ut_bin_order = ut_hits.column("bin_order", U16)
"""The hit at each place. Hits of a bin ascend; those of a crowded bin are in any order on a GPU, and are not used."""
ut_bin_x = ut_hits.column("bin_x", F32)
ut_bin_z = ut_hits.column("bin_z", F32)
"""x and z of the hit at each place. x is out of reach of every track for hits of crowded bins."""

ut_tracks = Collection(
    "ut_tracks",
    capacity=lambda limits: limits.events * MAX_TRACKS_PER_EVENT,
    placement=Placement.fixed(MAX_TRACKS_PER_EVENT),
    max_per_event=MAX_TRACKS_PER_EVENT,
)
"""VELO tracks with at least three hits in the UT. An event with too many is flagged; the first ones are kept."""
ut_track_count = ut_tracks.per_event("count", U32, role=Role.OUTPUT)
ut_track_velo = ut_tracks.column("velo_track", U16)
"""Number of the VELO track in its event; ascending: each VELO track has at most one VELO-UT track."""
ut_track_qop = ut_tracks.column("qop", F32)
"""Charge over momentum, 1/MeV."""
ut_track_x = ut_tracks.column("x", F32)
ut_track_z = ut_tracks.column("z", F32)
"""Fitted x at the last hit, mm."""
ut_track_tx = ut_tracks.column("tx", F32)
"""Fitted slope there. y and ty are those of the VELO track."""
ut_track_hit_count = ut_tracks.column("hit_count", U8)
ut_track_hits = ut_tracks.column("hits", U16, width=N_LAYERS)
"""[track][4]: the hit of each layer, relative to the first hit of the event, or NO_HIT."""

ut_candidates = Collection(
    "ut_candidates",
    capacity=velo_tracks.capacity,
    placement=velo_tracks.placement,
    max_per_event=velo_tracks.max_per_event,
)
"""The best continuation of each VELO track, at the index of the track."""
candidate_hit_count = ut_candidates.column("hit_count", U8)
"""0 for a track without a continuation; its other columns are not written."""
candidate_hits = ut_candidates.column("hits", U16, width=N_LAYERS)
candidate_quality = ut_candidates.column("quality", F32)
"""chi2 of the search divided by the number of hits minus one, larger for three hits; small values are good."""
candidate_fit = {name: ut_candidates.column(name, F32) for name in ("qop", "x", "z", "tx")}
"""As in ut_tracks."""
