"""The collections of downstream tracks: bounds, shapes and units."""

from hltnode.processing.framework.collections import F32, U8, U16, U32, Collection, Placement, Role, SharedTypes
from hltnode.processing.lhcb.geometry.ideal_scifi import N_LAYERS as N_SCIFI_LAYERS
from hltnode.processing.lhcb.tracks.long.collections import MAX_SEEDS_PER_EVENT, N_UT_LAYERS

MAX_TRACKS_PER_EVENT = 256
"""Simulated minimum-bias events have 70 at most."""

downstream_types = SharedTypes(__file__, "downstream_types", sizes={"max_downstream_tracks": MAX_TRACKS_PER_EVENT})

STATE = ("x", "y", "tx", "ty", "qop")
SEARCH = ("chi2", "magnet_distance", "y_distance", "stereo_distance", "used_ut_hits")

downstream_candidates = Collection(
    "downstream_candidates",
    capacity=lambda limits: limits.events * MAX_SEEDS_PER_EVENT,
    placement=Placement.fixed(MAX_SEEDS_PER_EVENT),
    max_per_event=MAX_SEEDS_PER_EVENT,
)
"""The best continuation of each seed into the UT, at the index of the seed."""
candidate_found = downstream_candidates.column("found", U8)
"""1 for a seed with a continuation; other seeds have no values in the other columns."""
candidate_ut_hits = downstream_candidates.column("ut_hits", U16, width=N_UT_LAYERS)
candidate_numbers = {name: downstream_candidates.column(name, F32) for name in (*STATE, *SEARCH)}
"""As in downstream_tracks."""

downstream_tracks = Collection(
    "downstream_tracks",
    capacity=lambda limits: limits.events * MAX_TRACKS_PER_EVENT,
    placement=Placement.fixed(MAX_TRACKS_PER_EVENT),
    max_per_event=MAX_TRACKS_PER_EVENT,
)
"""Tracks through UT and SciFi that share at most some hits with long tracks, ascending by seed. An event with too many
is flagged; the first ones are kept."""
downstream_count = downstream_tracks.per_event("count", U32, role=Role.OUTPUT)
downstream_seed = downstream_tracks.column("seed", U16)
"""Number of the seed in its event."""
downstream_state = {name: downstream_tracks.column(name, F32) for name in STATE}
"""State at z = 2642 mm, in the last layer of the UT: mm, slopes, charge over momentum in 1/MeV."""
downstream_search = {name: downstream_tracks.column(name, F32) for name in SEARCH}
"""chi2 of the search. Distances (mm): of seed and UT line in x at the plane of the kick; of the y of UT hits and seed;
of the two stereo layers in x. `used_ut_hits`: number of its UT hits that a long track has."""
downstream_seed_quality = downstream_tracks.column("seed_quality", F32)
downstream_ghost_probability = downstream_tracks.column("ghost_probability", F32)
"""Probability that it belongs to no particle."""
downstream_hit_count = downstream_tracks.column("hit_count", U8)
"""SciFi hits."""
downstream_hits = downstream_tracks.column("hits", U16, width=N_SCIFI_LAYERS)
"""[track][12]: the SciFi hit of each layer, relative to the first SciFi hit of the event, or NO_HIT."""
downstream_ut_hits = downstream_tracks.column("ut_hits", U16, width=N_UT_LAYERS)
"""[track][4]: the UT hit of each layer, relative to the first UT hit of the event."""
