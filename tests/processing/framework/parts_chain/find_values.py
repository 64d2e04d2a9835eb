"""parts_find_values: the bytes of a slice with enough charge."""

from parts.columns import N_SLICES, charge, value_count, values

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid

find_values = Algorithm.beside(
    __file__,
    prefix="parts",
    grid=Grid.PARTS,
    parts=N_SLICES,
    block_size=32,
    reads=(raw_banks,),
    updates=(event_flags, charge),
    writes=(values, value_count),
    constants={"threshold": 100},
)
