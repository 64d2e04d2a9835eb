"""parts_clear_counts: the counters of each event, to which fragments and slices add."""

from parts.columns import charge, fragment_bytes

from hltnode.processing.framework.declaration import Algorithm, Grid

clear_counts = Algorithm.beside(
    __file__, prefix="parts", grid=Grid.EVENTS, block_size=32, writes=(fragment_bytes, charge)
)
