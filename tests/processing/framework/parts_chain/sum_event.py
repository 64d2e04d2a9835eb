"""parts_sum_event: the sum of the values of all slices of an event."""

from parts.columns import event_total, value_count, values

from hltnode.processing.framework.declaration import Algorithm, Grid

sum_event = Algorithm.beside(
    __file__, prefix="parts", grid=Grid.EVENTS, block_size=32, reads=(values, value_count), writes=(event_total,)
)
