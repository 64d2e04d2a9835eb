"""What lines read and write beside their candidates: their scalers, and the decisions on each event."""

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import U8, U32, Column, Role, constant_column
from hltnode.processing.selection.lines.line import LINE_RECORD

line_table = constant_column("line_table", LINE_RECORD, lambda limits: limits.lines)
lines = Column(
    name="events.lines",
    dtype=U32,
    bound=lambda limits: limits.events * limits.line_words,
    collection=events,
    of_event=True,
    role=Role.OUTPUT,
)
"""[event][word]: bit i % 32 of word i // 32 is the decision of line i, scalers included."""
accepted = events.per_event("accepted", U8, role=Role.OUTPUT)
"""1 where at least one line fired. Flags alone accept no event: the error stream keeps those."""
unknown_selections = events.per_event("unknown_selections", U32, role=Role.OUTPUT)
"""How often a NaN has left open whether a line selects a candidate; the decision is false then."""
