"""parts_square_values: the squares of the values of a slice; threads take the largest slices first."""

from parts.columns import N_SLICES, square_total, squares, value_count, values

from hltnode.processing.framework.declaration import Algorithm, Grid

square_values = Algorithm.beside(
    __file__,
    prefix="parts",
    grid=Grid.PARTS,
    parts=N_SLICES,
    part_sizes=value_count,
    block_size=32,
    reads=(values, value_count),
    writes=(squares, square_total),
)
