"""odin_decode: run, times and crossing of each event from its ODIN bank (kernels/odin/odin_decode.cuh)."""

import numpy as np

from hltnode.processing.framework.declaration import Algorithm, Buffer, Grid, event_flags
from hltnode.processing.lhcb.raw_data.fragment_offsets import raw_fragments

ODIN_DATA = np.dtype(
    [
        ("run", "<u4"),
        ("event_type", "<u4"),
        ("gps_time_low", "<u4"),
        ("gps_time_high", "<u4"),
        ("event_id_low", "<u4"),
        ("event_id_high", "<u4"),
        ("bunch_id", "<u4"),
        ("crossing_type", "<u4"),
    ]
)
"""GPS time in microseconds, `crossing_type` as protocol.odin.CrossingType."""

odin = Buffer(name="odin", dtype=ODIN_DATA, count=lambda limits: limits.events)
"""Zeros where the event carries EventFlag.ODIN_ERROR."""

odin_decode = Algorithm(
    name="odin_decode",
    grid=Grid.EVENTS,
    block_size=32,
    inputs=raw_fragments,
    updates=(event_flags,),
    outputs=(odin,),
)
