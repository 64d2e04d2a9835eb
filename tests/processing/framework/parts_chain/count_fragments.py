"""parts_count_fragments: bytes of the fragments of each event, counted fragment by fragment."""

from parts.columns import fragment_bytes

from hltnode.processing.framework.batch import fragment_rows, mfp_rows
from hltnode.processing.framework.declaration import Algorithm, Grid

count_fragments = Algorithm.beside(
    __file__,
    prefix="parts",
    grid=Grid.FRAGMENTS,
    block_size=32,
    reads=(mfp_rows, fragment_rows),
    updates=(fragment_bytes,),
)
