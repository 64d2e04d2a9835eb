"""event_lines: the selection lines and the decision on each event."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.raw_data.odin_decode import odin
from hltnode.processing.lhcb.velo.collections import track_backward, track_count, track_ip, track_ip_chi2, track_pv
from hltnode.processing.selection.decisions import accepted, line_table, lines

event_lines = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(line_table, odin, event_flags, track_count, track_backward, track_ip, track_ip_chi2, track_pv),
    writes=(lines, accepted),
    capacities={"n_lines": lambda limits: limits.lines},
)
