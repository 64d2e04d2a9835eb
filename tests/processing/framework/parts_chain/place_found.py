"""parts_place_found: the place of each slice in an array without gaps."""

from parts.columns import found_offset, value_count

from hltnode.processing.framework.declaration import Algorithm, Grid

place_found = Algorithm.beside(
    __file__, prefix="parts", grid=Grid.ONE, block_size=256, reads=(value_count,), writes=(found_offset,)
)
