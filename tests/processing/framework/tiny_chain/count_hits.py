"""tiny_count_hits: hits of both sides, and the decision of the lines."""

from enum import IntEnum

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.collections import U32, Collection, Role, SharedTypes
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.selection.decisions import accepted, line_table, lines


class Side(IntEnum):
    """Top five bits of the source ids."""

    LEFT = 20
    RIGHT = 21


tiny_types = SharedTypes(__file__, "tiny_types", enums={"tiny_side": Side})

hits = Collection("hits", capacity=lambda limits: limits.input_bytes)
hit_count = hits.per_event("count", U32, role=Role.OUTPUT)

count_hits = Algorithm.beside(
    __file__,
    prefix="tiny",
    grid=Grid.EVENTS,
    block_size=32,
    reads=(raw_banks, line_table),
    updates=(event_flags,),
    writes=(hit_count, lines, accepted),
    constants={"threshold": 100},  # charge
    capacities={"n_lines": lambda limits: limits.lines},
)
