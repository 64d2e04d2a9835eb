"""Columns of lines besides candidates: scalers and the decisions on each event."""

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
"""1 if at least one line fired. A flag does not accept an event: flagged events go to the error stream."""
unknown_selections = events.per_event("unknown_selections", U32, role=Role.OUTPUT)
"""Number of selections that are undecided because of a NaN; such a decision is false."""
