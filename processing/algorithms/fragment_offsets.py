"""fragment_offsets: the place of every fragment of the batch."""

from hltnode.processing.framework.batch import fragment_rows, mfp_rows, raw_input
from hltnode.processing.framework.declaration import Algorithm, Grid

fragment_offsets = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.ROWS,
    block_size=32,
    reads=(raw_input, mfp_rows),
    writes=(fragment_rows,),
)
