"""tpc_find_jets: groups of merged tracks in cones of pseudorapidity and azimuth."""

from hltnode.processing.alice.tpc.candidates.collections import jet, jet_count
from hltnode.processing.alice.tpc.collections import geometry
from hltnode.processing.alice.tpc.merging.collections import merged_track, merged_track_count
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid

find_jets = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(geometry, merged_track, merged_track_count),
    updates=(event_flags,),
    writes=(jet, jet_count),
    constants={"radius": 0.4, "min_pt": 5.0, "min_track_pt": 0.15},
)
"""radius: of a cone in pseudorapidity and azimuth. min_pt: GeV/c of a jet above the mean of the event. min_track_pt:
GeV/c of a track that counts."""
