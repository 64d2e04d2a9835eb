"""tiny_count_hits: hits of both sides, and the number of the event."""

from enum import IntEnum

import numpy as np

from hltnode.processing.framework.batch import event_flags, events, raw_banks
from hltnode.processing.framework.collections import U8, U32, Collection, Placement, Record, Role, SharedTypes
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.framework.flags import ChainFlag, FlagKind
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS


class Side(IntEnum):
    """Top five bits of the source ids."""

    LEFT = USER_SUBDETECTORS[0]
    RIGHT = USER_SUBDETECTORS[1]


NO_HITS = ChainFlag(name="no_hits", bit=16, text="The event has no hit.", kind=FlagKind.NOTE)

LISTED_HITS = 50
"""Most hits of an event in the list."""
HIT_PLACE = Record("hit_place", np.dtype([("side", "<u2"), ("byte", "<u2")]), {"byte": "in the bank"})
tiny_types = SharedTypes(
    __file__,
    "tiny_types",
    records=(HIT_PLACE,),
    enums={"tiny_side": Side},
    sizes={"listed_hits": LISTED_HITS},
    flags=(NO_HITS,),
)

hits = Collection("hits", capacity=lambda limits: limits.input_bytes)
hit_count = hits.per_event("count", U32, role=Role.OUTPUT)
listed_hits = Collection(
    "listed_hits",
    capacity=lambda limits: limits.events * LISTED_HITS,
    placement=Placement.fixed(LISTED_HITS),
    max_per_event=LISTED_HITS,
)
listed_count = listed_hits.per_event("count", U32)
hit_charge = listed_hits.column("charge", U8)
hit_place = listed_hits.column("place", HIT_PLACE)
event_number = events.per_event("number", U32)

count_hits = Algorithm.beside(
    __file__,
    prefix="tiny",
    grid=Grid.EVENTS,
    block_size=32,
    reads=(raw_banks,),
    updates=(event_flags,),
    writes=(hit_count, event_number, listed_count, hit_charge, hit_place),
    constants={"threshold": 100},  # charge
)
