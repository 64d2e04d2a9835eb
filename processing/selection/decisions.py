"""What line kernels read and write: the table of lines, and the decisions on each event."""

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import U8, U64, Role, constant_column
from hltnode.processing.selection.line import LINE_RECORD, MAX_LINES

line_table = constant_column("line_table", LINE_RECORD, lambda _: MAX_LINES)
lines = events.per_event("lines", U64, role=Role.OUTPUT)
"""Bit i: the decision of line i, scalers included."""
accepted = events.per_event("accepted", U8, role=Role.OUTPUT)
"""1 where at least one line fired. Flags alone accept no event: the error stream keeps those."""
