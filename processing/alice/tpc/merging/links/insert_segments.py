"""tpc_insert_segments: segments that lie between two linked ends are inserted into the chain."""

from hltnode.processing.alice.tpc.collections import track_count
from hltnode.processing.alice.tpc.merging.collections import (
    best_end,
    cell_begins,
    claimed_by,
    claimed_key,
    free_end,
    inner_end,
    insertion,
    insertion_key,
    longer_segment,
    outer_end,
    shorter_segment,
)
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid

insert_segments = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(track_count, inner_end, outer_end, longer_segment, shorter_segment, free_end, cell_begins),
    updates=(best_end, event_flags),
    writes=(insertion, insertion_key, claimed_key, claimed_by),
    constants={"piece_distance": 4.0, "piece_z": 2.0, "piece_slope": 0.1, "max_overlap": 5.0},
)
"""piece_distance, piece_z: cm from the helix of an end of a link to both ends of the segment, 0 for none; piece_slope:
difference of their slopes. max_overlap: cm that the segment may begin before this end, and end behind the other one."""
