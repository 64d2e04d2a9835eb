"""raw_source_offsets: places of the sources of each event."""

from hltnode.processing.framework.batch import event_rows, mep_rows
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.raw.banks.collections import source_count, source_offset

source_offsets = Algorithm.beside(
    __file__,
    prefix="raw",
    grid=Grid.ONE,
    block_size=256,
    reads=(mep_rows, event_rows),
    writes=(source_offset, source_count),
)
