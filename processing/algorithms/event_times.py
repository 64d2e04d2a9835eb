"""The time of each event in ns, for chains whose data tell it, and the output list that delivers it.

A chain names `time_count` and `time_ns` among the outputs of one of its kernels, and TIMES among its lists. The list
has one element for an event with a time and none for an event without, so no number stands for "unknown".
"""

from hltnode.processing.framework.collections import U32, U64, Collection, Placement
from hltnode.processing.framework.output_lists import ListValue, OutputList

event_times = Collection(
    "event_times", capacity=lambda limits: limits.events, placement=Placement.fixed(1), max_per_event=1
)
time_count = event_times.per_event("count", U32)
"""1 if the time of the event is known, else 0."""
time_ns = event_times.column("time_ns", U64)
"""ns since the origin of the clock that the data have."""

TIMES = OutputList(
    name="times",
    text="the time of each event that has one",
    count=time_count,
    values={"time_ns": ListValue(column=time_ns, text="time since the origin of its clock", unit="ns")},
)
