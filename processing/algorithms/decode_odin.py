"""decode_odin: run, time and crossing of each event from its ODIN bank, for any detector that has this board.

Chains without ODIN leave it out; their files of MEPs then have no such source (docs/formats/mep.md).
"""

import numpy as np

from hltnode.processing.framework.batch import event_flags, events, raw_banks
from hltnode.processing.framework.collections import Record, SharedTypes
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import BANK_SIZE
from hltnode.protocol.raw_data.source_id import ODIN_SUBDETECTOR

ODIN_DATA = Record(
    "odin_data",
    np.dtype(
        [
            ("run", "<u4"),
            ("event_type", "<u4"),
            ("gps_time_low", "<u4"),
            ("gps_time_high", "<u4"),
            ("event_id_low", "<u4"),
            ("event_id_high", "<u4"),
            ("bunch_id", "<u4"),
            ("crossing_type", "<u4"),
            ("orbit", "<u4"),
            ("tae_central", "<u4"),
            ("tae_half_window", "<u4"),
        ]
    ),
    {
        "event_type": "bit mask",
        "gps_time_low": "us",
        "crossing_type": "0 none, 1 beam 1, 2 beam 2, 3 both",
        "tae_central": "1: the central one of several crossings read out together",
        "tae_half_window": "number of crossings on either side",
    },
)
"""Fields of an ODIN bank for kernels and lines; `crossing_type` as protocol.raw_data.odin.CrossingType."""

odin_types = SharedTypes(
    __file__,
    "odin_types",
    records=(ODIN_DATA,),
    sizes={
        "odin_subdetector": ODIN_SUBDETECTOR,
        "odin_bank_type": int(BankType.ODIN),
        "odin_bank_size": BANK_SIZE,
    },
)

odin = events.per_event("odin", ODIN_DATA)
"""Zeros if the event has EventFlag.ODIN_ERROR."""

decode_odin = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.EVENTS,
    block_size=32,
    reads=(raw_banks,),
    updates=(event_flags,),
    writes=(odin,),
)
