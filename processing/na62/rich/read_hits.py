"""rich_read_hits: the hits of each event as positions in the focal plane, and flags for what cannot be read."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.na62.rich.collections import (
    event_number,
    hit_count,
    hit_time,
    hit_x,
    hit_y,
    pmt_position,
    ring_count,
)

read_hits = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=32,
    reads=(raw_banks, pmt_position),
    updates=(event_flags,),
    writes=(hit_count, hit_x, hit_y, hit_time, ring_count, event_number),
)
