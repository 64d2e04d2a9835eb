"""copy_list: the elements of each event, from a column to an output list (framework/output_lists.py)."""

from hltnode.processing.algorithms.list_offsets import offset
from hltnode.processing.framework.collections import U32, Column
from hltnode.processing.framework.declaration import Algorithm, Grid

source_offset = Column(name="source.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)
source = Column(name="source.words", dtype=U32, bound=lambda _: 0)
delivered = Column(name="delivered.words", dtype=U32, bound=lambda _: 0)

copy_list = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(offset, source_offset, source),
    writes=(delivered,),
    constants={"element_bytes": 4, "has_offset": 0, "divisor": 1, "per_event": 0, "times": 1},
)
"""For any column: deliver_lists.py sets the columns, and the placement of their collection (collections.Placement).
has_offset: 1 if the placement reads source.offset."""
