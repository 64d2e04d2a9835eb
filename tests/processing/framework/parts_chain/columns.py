"""Columns: the bytes of each event in slices of equal length, and what kernels count in them."""

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import U8, U16, U32, Collection, Placement, Role, SharedTypes
from hltnode.processing.framework.flags import ChainFlag
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS

N_SLICES = 5
MAX_IN_SLICE = 64
FULL_SLICE = ChainFlag(name="full_slice", bit=16, text="A slice has more bytes than fit.")

slice_types = SharedTypes(
    __file__,
    "slice_types",
    sizes={"n_slices": N_SLICES, "max_in_slice": MAX_IN_SLICE, "first_board": USER_SUBDETECTORS[0]},
    flags=(FULL_SLICE,),
)

slices = Collection(
    "slices",
    capacity=lambda limits: limits.events * N_SLICES * MAX_IN_SLICE,
    placement=Placement.fixed(MAX_IN_SLICE),
    parts=N_SLICES,
    max_per_part=MAX_IN_SLICE,
)
values = slices.column("values", U8)
"""The bytes of a slice, charge at least the threshold."""
value_count = slices.per_part("count", U32)
value_sum = slices.per_part("sum", U32, role=Role.OUTPUT)

next_sum = slices.per_part("next_sum", U32, role=Role.OUTPUT)
"""The sum of the slice that follows in the event."""

offsets_collection = Collection("found_offsets", capacity=lambda limits: limits.events * N_SLICES, parts=N_SLICES)
found_offset = offsets_collection.per_part("offset", U32, extra=1)
found = Collection(
    "found",
    capacity=lambda limits: limits.events * N_SLICES * MAX_IN_SLICE,
    placement=Placement(offsets=found_offset),
    parts=N_SLICES,
    max_per_part=MAX_IN_SLICE,
)
squares = found.column("squares", U16)
"""The square of each value; slices are adjacent."""
square_total = found.per_part("total", U32, role=Role.OUTPUT)

event_total = events.per_event("total", U32, role=Role.OUTPUT)
fragment_bytes = events.per_event("fragment_bytes", U32, role=Role.OUTPUT)
charge = events.per_event("charge", U32, role=Role.OUTPUT)
