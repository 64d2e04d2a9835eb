"""event_lines: the selection lines and the decision on each event (kernels/lines/event_lines.cuh)."""

import numpy as np

from hltnode.processing.framework.declaration import (
    Algorithm,
    Buffer,
    Capacity,
    Grid,
    Role,
    batch_header,
    event_flags,
)
from hltnode.processing.lhcb.raw_data.odin_decode import odin
from hltnode.processing.lhcb.velo.collections import velo_cluster_offset, velo_track_count
from hltnode.processing.lhcb.velo.impact_parameter import velo_track_ip, velo_track_ip_chi2, velo_track_pv
from hltnode.processing.lhcb.velo.kalman_filter import velo_track_backward
from hltnode.processing.selection.line import LINE_RECORD

line_table = Buffer(name="line_table", dtype=LINE_RECORD, count=lambda limits: limits.lines, role=Role.CONSTANT)
lines = Buffer(
    name="lines", dtype=np.dtype("<u4"), count=lambda limits: limits.events * limits.line_words, role=Role.OUTPUT
)
"""[event][word]: bit i % 32 of word i // 32 is the decision of line i, scalers included."""
accepted = Buffer(name="accepted", dtype=np.dtype("u1"), count=lambda limits: limits.events, role=Role.OUTPUT)
"""1 where at least one line fired. Flags alone accept no event: the error stream keeps those."""

event_lines = Algorithm(
    name="event_lines",
    grid=Grid.EVENTS,
    block_size=64,
    inputs=(
        batch_header,
        line_table,
        odin,
        event_flags,
        velo_cluster_offset,
        velo_track_count,
        velo_track_backward,
        velo_track_ip,
        velo_track_ip_chi2,
        velo_track_pv,
    ),
    outputs=(lines, accepted),
    capacities=(Capacity("n_lines", lambda limits: limits.lines),),
)
