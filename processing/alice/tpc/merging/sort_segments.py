"""tpc_sort_segments: the segments of an event, by bins."""

from hltnode.processing.alice.tpc.collections import track_count
from hltnode.processing.alice.tpc.merging.collections import bin_begins, segment_bin, sorted_segments
from hltnode.processing.framework.declaration import Algorithm, Grid

sort_segments = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(track_count, segment_bin),
    writes=(bin_begins, sorted_segments),
)
