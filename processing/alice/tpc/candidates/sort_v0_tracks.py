"""tpc_sort_v0_tracks: displaced tracks of negative charge, by bins."""

from hltnode.processing.alice.tpc.candidates.collections import v0_bin, v0_bin_begins, v0_partners
from hltnode.processing.alice.tpc.merging.collections import merged_track_count
from hltnode.processing.framework.declaration import Algorithm, Grid

sort_v0_tracks = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(merged_track_count, v0_bin),
    writes=(v0_bin_begins, v0_partners),
)
