"""Hits and rings of each event: bounds, shapes and units."""

from enum import IntEnum

import numpy as np

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import (
    F32,
    U8,
    U32,
    Collection,
    Placement,
    Record,
    Role,
    SharedTypes,
    constant_column,
)
from hltnode.processing.na62.rich.pmt_positions import N_PMTS
from hltnode.protocol.na62.rich_banks import MAX_HITS, RICH_SOURCE, RICH_SUBDETECTOR, RICH_VERSION, RichBankType

MAX_RINGS = 6
"""Rings of an event. A decay has at most three; the others are room for accidental tracks."""


class Fit(IntEnum):
    """Fits of a circle."""

    FIT_LEAST_SQUARES = 0
    FIT_TAUBIN = 1
    FIT_PRATT = 2


RING = Record(
    "rich_ring",
    np.dtype([("x", "<f4"), ("y", "<f4"), ("radius", "<f4"), ("chi2", "<f4"), ("hits", "<u4")]),
    {"x": "centre, mm", "y": "centre, mm", "radius": "mm", "chi2": "sum over its hits"},
)

rich_types = SharedTypes(
    __file__,
    "rich_types",
    records=(RING,),
    enums={"rich_fit": Fit},
    sizes={
        "rich_subdetector": RICH_SUBDETECTOR,
        "rich_source": RICH_SOURCE,
        "rich_version": RICH_VERSION,
        "rich_hits_bank": int(RichBankType.HITS),
        "rich_max_hits": MAX_HITS,
        "rich_max_rings": MAX_RINGS,
        "rich_pmts": N_PMTS,
        # Points with a smaller mean square distance from their mean are one point, mm^2.
        "min_mean_square": 1e-3,
    },
)

pmt_position = constant_column("rich.pmt_position", F32, lambda _: 2 * N_PMTS)
"""x and y in mm of each photomultiplier."""

hits = Collection(
    "rich_hits",
    capacity=lambda limits: MAX_HITS * limits.events,
    placement=Placement.fixed(MAX_HITS),
    max_per_event=MAX_HITS,
)
hit_count = hits.per_event("count", U32, role=Role.OUTPUT)
hit_x = hits.column("x", F32)
hit_y = hits.column("y", F32)
hit_time = hits.column("time", U8)
"""25/256 ns since the start of the crossing."""

rings = Collection(
    "rings",
    capacity=lambda limits: MAX_RINGS * limits.events,
    placement=Placement.fixed(MAX_RINGS),
    max_per_event=MAX_RINGS,
)
ring_count = rings.per_event("count", U32, role=Role.OUTPUT)
ring = rings.column("ring", RING)
event_number = events.per_event("number", U32, width=2)
"""[event][2]: low and high word of the number of the event in its run."""
