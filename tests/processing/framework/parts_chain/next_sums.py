"""parts_next_sums: the sum of the slice that follows each slice."""

from parts.columns import N_SLICES, next_sum, value_sum

from hltnode.processing.framework.declaration import Algorithm, Grid

next_sums = Algorithm.beside(
    __file__,
    prefix="parts",
    grid=Grid.PARTS,
    parts=N_SLICES,
    after_all_parts=True,
    block_size=32,
    reads=(value_sum,),
    writes=(next_sum,),
)
