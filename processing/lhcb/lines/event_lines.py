"""event_lines: the selection lines and the decision on each event."""

from hltnode.processing.framework.batch import event_flags, events
from hltnode.processing.framework.collections import U8, U32, Column, Role, constant_column
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.raw_data.odin_decode import odin
from hltnode.processing.lhcb.velo.collections import track_backward, track_count, track_ip, track_ip_chi2, track_pv
from hltnode.processing.selection.line import LINE_RECORD

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

event_lines = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(line_table, odin, event_flags, track_count, track_backward, track_ip, track_ip_chi2, track_pv),
    writes=(lines, accepted),
    capacities={"n_lines": lambda limits: limits.lines},
)
