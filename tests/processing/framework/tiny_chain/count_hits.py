"""tiny_count_hits: hits of both sides, and the number of the event."""

from enum import IntEnum

from hltnode.processing.framework.batch import event_flags, events, raw_banks
from hltnode.processing.framework.collections import U32, Collection, Role, SharedTypes
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.framework.flags import ChainFlag, FlagKind
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS


class Side(IntEnum):
    """Top five bits of the source ids."""

    LEFT = USER_SUBDETECTORS[0]
    RIGHT = USER_SUBDETECTORS[1]


NO_HITS = ChainFlag(name="no_hits", bit=16, text="The event has no hit.", kind=FlagKind.NOTE)

tiny_types = SharedTypes(__file__, "tiny_types", enums={"tiny_side": Side}, flags=(NO_HITS,))

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
