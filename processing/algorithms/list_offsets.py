"""list_offsets: the places of the elements of each event in an output list (framework/output_lists.py)."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import U32, Column
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.framework.flags import EventFlag

count = Column(name="list.count", dtype=U32, bound=lambda limits: limits.events, of_event=True)
offset = Column(name="list.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)

list_offsets = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.ONE,
    block_size=256,
    reads=(count,),
    updates=(event_flags,),
    writes=(offset,),
    constants={"left_out": int(EventFlag.LIST_LEFT_OUT)},
    capacities={"capacity": lambda _: 0},
)
"""For any list: deliver_lists.py sets its columns and capacity. left_out: flag of an event without room."""
