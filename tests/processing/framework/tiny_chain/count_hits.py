"""tiny_count_hits: hits of both sides, and the number of the event."""

from enum import IntEnum

from hltnode.processing.framework.batch import event_flags, events, raw_banks
from hltnode.processing.framework.collections import U32, Collection, Role, SharedTypes
from hltnode.processing.framework.declaration import Algorithm, Grid


class Side(IntEnum):
    """Top five bits of the source ids."""

    LEFT = 20
    RIGHT = 21


tiny_types = SharedTypes(__file__, "tiny_types", enums={"tiny_side": Side})

hits = Collection("hits", capacity=lambda limits: limits.input_bytes)
hit_count = hits.per_event("count", U32, role=Role.OUTPUT)
event_number = events.per_event("number", U32)

count_hits = Algorithm.beside(
    __file__,
    prefix="tiny",
    grid=Grid.EVENTS,
    block_size=32,
    reads=(raw_banks,),
    updates=(event_flags,),
    writes=(hit_count, event_number),
    constants={"threshold": 100},  # charge
)
