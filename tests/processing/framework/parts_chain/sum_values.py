"""parts_sum_values: the sum of the values of a slice."""

from parts.columns import N_SLICES, value_count, value_sum, values

from hltnode.processing.framework.declaration import Algorithm, Grid

sum_values = Algorithm.beside(
    __file__,
    prefix="parts",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=32,
    reads=(values, value_count),
    writes=(value_sum,),
)
