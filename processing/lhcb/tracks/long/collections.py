"""The collections of the long tracking: SciFi seeds and long tracks, with their bounds, shapes and units."""

from enum import IntEnum

from hltnode.processing.framework.collections import F32, U8, U16, U32, Collection, Placement, Role, SharedTypes
from hltnode.processing.lhcb.geometry.ideal_scifi import N_LAYERS
from hltnode.processing.lhcb.scifi.collections import N_ZONES, max_hits, scifi_hit_offset, scifi_hits

MAX_TRACKS_PER_EVENT = 1024
MAX_X_SEEDS_PER_EVENT = 2048
MAX_SEEDS_PER_EVENT = 2048
N_X_LAYERS = 6
N_UT_LAYERS = 4
Z_END_SCIFI = 9410.0
FIRST_BID_WITHOUT_UT = 1 << 31
"""Bids of candidates without UT have this value or more; the bits below it are those of a float."""
NO_BID = 0xFFFFFFFF
N_BINS = 256
BIN_WIDTH = 25.6
BINS_BEGIN = -3276.8
"""mm, of the bins of x in a SciFi zone."""
CELLS_PER_BIN = 32
"""Cells of a bin: 0.8 mm each, one bit of a word."""
BIN_STRIDE = N_BINS + 16
"""Bins of a zone, one place for its end, and room for a vector that begins at the end."""
CELL_STRIDE = N_ZONES * N_BINS + 8
"""Words of an event, and room for a load across the end."""


class TrackOrigin(IntEnum):
    """The search that found a long track."""

    FORWARD = 0
    """A VELO-UT track, followed forward."""
    FORWARD_NO_UT = 1
    """A VELO track, followed forward."""
    MATCHED = 2
    """A VELO track matched to a SciFi seed."""


long_types = SharedTypes(
    __file__,
    "long_types",
    enums={"track_origin": TrackOrigin},
    sizes={
        "max_long_tracks": MAX_TRACKS_PER_EVENT,
        "max_x_seeds": MAX_X_SEEDS_PER_EVENT,
        "max_scifi_seeds": MAX_SEEDS_PER_EVENT,
        "max_scifi_track_hits": N_LAYERS,
        "n_long_ut_layers": N_UT_LAYERS,
        "z_end_scifi": Z_END_SCIFI,
        "n_scifi_bins": N_BINS,
        "scifi_bin_stride": BIN_STRIDE,
        "scifi_bins_begin": BINS_BEGIN,
        "scifi_cells_per_bin": CELLS_PER_BIN,
        "scifi_cells_per_mm": CELLS_PER_BIN / BIN_WIDTH,
        "scifi_cell_stride": CELL_STRIDE,
        "first_bid_without_ut": FIRST_BID_WITHOUT_UT,
        "no_bid": NO_BID,
    },
)

scifi_used = scifi_hits.column("used", U8)
"""1 for a hit on a long track found before the seeding; the seeding skips it."""

seeding_hits = Collection(
    "seeding_hits",
    capacity=max_hits,
    placement=Placement(offsets=scifi_hit_offset),
    max_per_event=scifi_hits.max_per_event,
)
"""The unused SciFi hits, in the order of all hits."""
seeding_bins = seeding_hits.per_event("bins", U16, width=N_ZONES * BIN_STRIDE)
"""As scifi_bins, for the seeding hits."""
seeding_cells = seeding_hits.per_event("cells", U32, width=CELL_STRIDE)
"""[event][x layer][half][256]: one bit for every 0.8 mm of the bins of an x layer, set for a cell with a hit."""
seeding_x = seeding_hits.column("x", F32)
"""mm at y = 0."""
seeding_hit = seeding_hits.column("hit", U16)
"""Number of the hit among all SciFi hits of the event."""

x_seeds = Collection(
    "x_seeds",
    capacity=lambda limits: limits.events * MAX_X_SEEDS_PER_EVENT,
    placement=Placement.fixed(MAX_X_SEEDS_PER_EVENT),
    max_per_event=MAX_X_SEEDS_PER_EVENT,
)
"""Curves through hits of x layers in one half of the SciFi tracker. An event with too many is flagged; the first ones
are kept."""
x_seed_count = x_seeds.per_event("count", U32)
x_seed_curve = {name: x_seeds.column(name, F32) for name in ("a", "b", "c")}
"""x(z) = a + b D + c D² (1 + scifi_cubic D), D = z - z_scifi_reference; mm."""
x_seed_score = x_seeds.column("score", F32)
"""Chi2 plus a constant for each layer without a hit."""
x_seed_hit_count = x_seeds.column("hit_count", U8)
x_seed_hits = x_seeds.column("hits", U16, width=N_X_LAYERS)
"""[seed][6]: the hit of each x layer, relative to the first of the seeding hits of the event, or NO_HIT."""

scifi_seeds = Collection(
    "scifi_seeds",
    capacity=lambda limits: limits.events * MAX_SEEDS_PER_EVENT,
    placement=Placement.fixed(MAX_SEEDS_PER_EVENT),
    max_per_event=MAX_SEEDS_PER_EVENT,
)
"""Track segments found in the SciFi tracker alone."""
seed_count = scifi_seeds.per_event("count", U32)
seed_state = {name: scifi_seeds.column(name, F32) for name in ("x", "y", "tx", "ty", "curvature", "quality")}
"""State at z = 9410 mm (mm, slopes); curvature of x(z) in 1/mm; quality: small values are good."""
seed_hit_count = scifi_seeds.column("hit_count", U8)
seed_hits = scifi_seeds.column("hits", U16, width=N_LAYERS)
"""[seed][12]: the hit of each layer, relative to the first SciFi hit of the event, or NO_HIT."""

forward_candidates = Collection(
    "forward_candidates",
    capacity=lambda limits: limits.events * MAX_TRACKS_PER_EVENT,
    placement=Placement.fixed(MAX_TRACKS_PER_EVENT),
    max_per_event=MAX_TRACKS_PER_EVENT,
)
"""The best continuation of each VELO track from the forward search, by the number of the track in the event."""
candidate_hit_count = forward_candidates.column("hit_count", U8)
"""Number of SciFi hits; 0 for a track without a continuation."""
candidate_ut_track = forward_candidates.column("ut_track", U16)
"""Number of the VELO-UT track that it continues, or NO_TRACK."""
candidate_hits = forward_candidates.column("hits", U16, width=N_LAYERS)
candidate_ut_hits = forward_candidates.column("ut_hits", U16, width=4)
candidate_quality = forward_candidates.column("quality", F32)
candidate_state = {name: forward_candidates.column(name, F32) for name in ("qop", "x", "y", "tx", "ty")}
"""As in long_tracks."""
candidate_columns = (
    candidate_hit_count,
    candidate_ut_track,
    candidate_hits,
    candidate_ut_hits,
    candidate_quality,
    *candidate_state.values(),
)
scifi_bins = scifi_hits.per_event("bins", U16, width=N_ZONES * BIN_STRIDE)
"""[event][24][272]: the hits in bin b of a zone are [b] .. [b + 1], relative to the first hit of the event; hits
beyond the first or last bin belong to it."""
scifi_cells = scifi_hits.per_event("cells", U32, width=CELL_STRIDE)
"""[event][24 * 256 + 8]: one word for each bin of a zone, one bit for each cell of it that has a hit, the lowest one
first."""
scifi_owner = scifi_hits.column("owner", U32)
"""The lowest bid of the forward candidates that use a SciFi hit, or NO_BID (track.cuh)."""

long_tracks = Collection(
    "long_tracks",
    capacity=lambda limits: limits.events * MAX_TRACKS_PER_EVENT,
    placement=Placement.fixed(MAX_TRACKS_PER_EVENT),
    max_per_event=MAX_TRACKS_PER_EVENT,
)
"""Tracks with a VELO and a SciFi part, at most one for each VELO track, in ascending order of VELO tracks. An event
with too many is flagged; the first ones are kept."""
long_count = long_tracks.per_event("count", U32, role=Role.OUTPUT)
long_velo_track = long_tracks.column("velo_track", U16)
"""Number of the VELO track in its event."""
long_ut_track = long_tracks.column("ut_track", U16)
"""Number of the VELO-UT track in its event, or NO_TRACK."""
long_origin = long_tracks.column("origin", U8)
"""TrackOrigin."""
long_qop = long_tracks.column("qop", F32)
"""Charge over momentum, 1/MeV."""
long_state = {name: long_tracks.column(name, F32) for name in ("x", "y", "tx", "ty")}
"""State at z = 9410 mm; mm and slopes."""
long_quality = long_tracks.column("quality", F32)
"""Quality from the search that found the track: small values are good, comparable among tracks of one origin."""
long_hit_count = long_tracks.column("hit_count", U8)
"""SciFi hits."""
long_hits = long_tracks.column("hits", U16, width=N_LAYERS)
"""[track][12]: the SciFi hit of each layer, relative to the first SciFi hit of the event, or NO_HIT."""
long_ut_hits = long_tracks.column("ut_hits", U16, width=N_UT_LAYERS)
"""[track][4]: the UT hit of each layer, relative to the first UT hit of the event, or NO_HIT: from its VELO-UT track,
or found after the SciFi part."""

matched_tracks = Collection(
    "matched_tracks",
    capacity=lambda limits: limits.events * MAX_TRACKS_PER_EVENT,
    placement=Placement.fixed(MAX_TRACKS_PER_EVENT),
    max_per_event=MAX_TRACKS_PER_EVENT,
)
"""VELO tracks with a SciFi seed, ascending by VELO track, before they are merged into the long tracks."""
matched_count = matched_tracks.per_event("count", U32)
matched_velo_track = matched_tracks.column("velo_track", U16)
matched_seed = matched_tracks.column("seed", U16)
matched_qop = matched_tracks.column("qop", F32)
"""1/MeV."""
matched_quality = matched_tracks.column("quality", F32)
matched_ut_hits = matched_tracks.column("ut_hits", U16, width=N_UT_LAYERS)
"""As long_ut_hits."""
