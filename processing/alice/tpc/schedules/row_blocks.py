"""The constructor by blocks of rows: launches of one graph, each for 40 rows in one direction."""

from hltnode.processing.alice.tpc.collections import ROW_BLOCKS
from hltnode.processing.alice.tpc.schedules.begin_tracklets import begin_tracklets
from hltnode.processing.alice.tpc.schedules.end_tracklets import end_tracklets
from hltnode.processing.alice.tpc.schedules.extend_tracklets import extend_tracklets
from hltnode.processing.alice.tpc.schedules.turn_tracklets import turn_tracklets

_SAME_COLUMNS = {column: column for column in extend_tracklets.columns}
_EXTENSIONS = (
    extend_tracklets,
    *(
        extend_tracklets.on(f"{extend_tracklets.name}_{number}", _SAME_COLUMNS, constants={"row_block": number})
        for number in range(1, 2 * ROW_BLOCKS)
    ),
)
"""First those upwards, then those downwards."""

ROW_BLOCK_ALGORITHMS = (
    *(begin_tracklets, *_EXTENSIONS[:ROW_BLOCKS], turn_tracklets),
    *(*_EXTENSIONS[ROW_BLOCKS:], end_tracklets),
)
