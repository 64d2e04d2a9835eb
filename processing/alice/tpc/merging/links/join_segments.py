"""tpc_join_segments: the segments of each merged track."""

from hltnode.processing.alice.tpc.collections import track_count
from hltnode.processing.alice.tpc.merging.collections import (
    best_end,
    inner_end,
    longer_segment,
    merged_first_segment,
    merged_run,
    merged_segment,
    merged_segment_count,
    merged_size,
    merged_track_count,
    outer_end,
    shorter_segment,
    turn_chain,
    turn_score,
)
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid

join_segments = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.EVENTS,
    block_size=256,
    reads=(
        *(track_count, inner_end, outer_end, best_end, longer_segment, shorter_segment),
        *(turn_score, turn_chain),
    ),
    updates=(event_flags,),
    writes=(
        *(merged_track_count, merged_first_segment, merged_run, merged_size),
        *(merged_segment, merged_segment_count),
    ),
)
