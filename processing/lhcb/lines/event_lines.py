"""event_lines: the selection lines and the decision on each event."""

from hltnode.processing.framework.batch import event_flags, events
from hltnode.processing.framework.collections import U8, U64, Role, constant_column
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.raw_data.odin_decode import odin
from hltnode.processing.lhcb.velo.collections import track_backward, track_count, track_ip, track_ip_chi2, track_pv
from hltnode.processing.selection.line import LINE_RECORD, MAX_LINES

line_table = constant_column("line_table", LINE_RECORD, lambda _: MAX_LINES)
lines = events.per_event("lines", U64, role=Role.OUTPUT)
"""Bit i: the decision of line i, scalers included."""
accepted = events.per_event("accepted", U8, role=Role.OUTPUT)
"""1 where at least one line fired. Flags alone accept no event: the error stream keeps those."""

event_lines = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(line_table, odin, event_flags, track_count, track_backward, track_ip, track_ip_chi2, track_pv),
    writes=(lines, accepted),
)
