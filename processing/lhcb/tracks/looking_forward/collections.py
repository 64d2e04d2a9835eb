"""The sets of x hits that Looking Forward keeps of each VELO-UT track."""

from hltnode.processing.framework.collections import U8, U16, U32, SharedTypes
from hltnode.processing.lhcb.tracks.long.collections import N_X_LAYERS
from hltnode.processing.lhcb.ut.collections import ut_tracks

MAX_CANDIDATES = 32
"""Candidates of a track in an x layer."""
MAX_TRIPLETS = 32
"""Triplets of a track that are extended."""
MAX_X_TRACKS = 2
"""Sets of x hits of a track that are completed."""
TILE = 16
"""Hits of the first and of the last layer of a triplet that are compared at a time."""
MAX_TRIED = 256
"""Hits of a window that are tried, 128 on either side of its middle."""

looking_forward_types = SharedTypes(
    __file__,
    "looking_forward_types",
    sizes={
        "n_scifi_x_layers": N_X_LAYERS,
        "max_x_hits_of_layer": MAX_CANDIDATES,
        "max_hit_triplets": MAX_TRIPLETS,
        "max_x_tracks": MAX_X_TRACKS,
        "triplet_tile": TILE,
        "max_x_hits_tried": MAX_TRIED,
    },
)

x_track_hit_count = ut_tracks.column("x_hit_count", U8, width=MAX_X_TRACKS)
"""[track][2]: number of x hits of each set; 0: none. The first set has the smaller spread."""
x_track_hits = ut_tracks.column("x_hits", U16, width=MAX_X_TRACKS * N_X_LAYERS)
"""[track][2][6]: the hit of each x layer, relative to the first SciFi hit of the event, or NO_HIT."""
chi2_count = ut_tracks.column("n_triplet_chi2", U32)
"""Number of triplets of each track that were compared."""
