"""tpc_describe_v0_tracks: circles and bins of merged tracks that do not point to the beam line."""

from hltnode.processing.alice.tpc.candidates.collections import v0_bin, v0_track
from hltnode.processing.alice.tpc.collections import geometry
from hltnode.processing.alice.tpc.merging.collections import MERGING_PARTS, merged_track, merged_track_count
from hltnode.processing.framework.declaration import Algorithm, Grid

describe_v0_tracks = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=MERGING_PARTS,
    block_size=128,
    reads=(geometry, merged_track, merged_track_count),
    writes=(v0_track, v0_bin),
    constants={"min_clusters": 60, "min_significance": 1.5, "dca_constant": 0.1, "dca_scattering": 0.17},
)
"""min_clusters: of a track. min_significance: least distance of the beam line over its error. The square of this error
in cm is dca_constant^2 + (dca_scattering / pT)^2; tracks scatter in the walls of the TPC."""
