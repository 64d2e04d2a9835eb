"""Hits, candidates and windows of each sub-slice: bounds, shapes and units."""

from enum import IntFlag

import numpy as np

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import (
    I32,
    U32,
    U64,
    Collection,
    Placement,
    Record,
    Role,
    SharedTypes,
    constant_column,
)
from hltnode.protocol.km3net.hit_banks import HIT, HITS_VERSION, KM3NET_SUBDETECTOR, HitBankType
from hltnode.protocol.raw_data.source_id import NUMBER_BITS

MAX_HITS = 1024
"""Hits of a sub-slice and of the time behind it that its triggers need. 84 PMTs at 55 kHz, two of them at 1 MHz, give
166 hits in 25.5 us: room for six times as many."""
MAX_CANDIDATES = 256
MAX_WINDOWS = 16
N_SOURCES = 1 << NUMBER_BITS
MAX_TESTED = 64
"""Hits behind a hit that its triggers test. It bounds the time that a burst of hits can cost."""


class Trigger(IntFlag):
    """Triggers of a candidate (B. Bouhadef et al., "Parallel Neutrino Triggers Using GPUs for an Underwater Telescope",
    DESY-PROC-2014-05, section 4.2)."""

    TRIGGER_N7 = 1
    """7 hits in the time window."""
    TRIGGER_DN7 = 2
    """7 PMTs in the time window."""
    TRIGGER_SC = 4
    """Two hits in adjacent PMTs."""
    TRIGGER_FC = 8
    """Two hits in different PMTs of a floor."""
    TRIGGER_AFC = 16
    """Two hits on consecutive floors of a line."""
    TRIGGER_CHARGE = 32
    """A hit with much charge."""
    TRIGGER_CAUSAL = 64
    """Hits that light connects."""


CANDIDATE = Record(
    "km3net_candidate",
    np.dtype(
        [
            ("time", "<u4"),
            ("triggers", "<u4"),
            ("hits", "<u4"),
            ("pmts", "<u4"),
            ("causal_hits", "<u4"),
            ("charge", "<u4"),
        ]
    ),
    {
        "time": "of its first hit, ns since the start of the sub-slice",
        "triggers": "bits of km3net_trigger",
        "hits": "in the time window",
        "pmts": "different ones among the tested hits",
        "causal_hits": "greatest group found of hits that light connects",
        "charge": "of the tested hits, hundredths of a photoelectron",
    },
)
WINDOW = Record(
    "km3net_window",
    np.dtype(
        [
            ("start_ns", "<i4"),
            ("end_ns", "<i4"),
            ("lines", "<u4"),
            ("candidates", "<u4"),
            ("hits", "<u4"),
            ("pmts", "<u4"),
            ("causal_hits", "<u4"),
            ("charge", "<u4"),
        ]
    ),
    {
        "start_ns": "first ns that is kept, since the start of the sub-slice; may be negative",
        "end_ns": "first ns behind it",
        "lines": "triggers of all its candidates, bits of km3net_trigger",
        "candidates": "number of hits that begin one",
        "hits": "largest number of its candidates",
        "pmts": "largest number of its candidates",
        "causal_hits": "largest number of its candidates",
        "charge": "largest of its candidates, hundredths of a photoelectron",
    },
)

km3net_types = SharedTypes(
    __file__,
    "km3net_types",
    records=(CANDIDATE, WINDOW),
    enums={"km3net_trigger": Trigger},
    sizes={
        "km3net_subdetector": KM3NET_SUBDETECTOR,
        "km3net_hits_bank": int(HitBankType.HITS),
        "km3net_hits_version": HITS_VERSION,
        "km3net_hit_bytes": HIT.itemsize,
        "km3net_max_hits": MAX_HITS,
        "km3net_max_candidates": MAX_CANDIDATES,
        "km3net_max_windows": MAX_WINDOWS,
        "km3net_max_tested": MAX_TESTED,
        "km3net_sources": N_SOURCES,
    },
)

clock_offset = constant_column("km3net.clock_offset", I32, lambda _: N_SOURCES)
"""ns that are added to the times of a source, by its number."""

hits = Collection(
    "km3net_hits",
    capacity=lambda limits: MAX_HITS * limits.events,
    placement=Placement.fixed(MAX_HITS),
    max_per_event=MAX_HITS,
)
hit = hits.column("hit", U64)
"""Time in the upper 32 bits, PMT, charge in the lower 16; in ascending order."""
hit_count = hits.per_event("count", U32)
"""Hits of the sub-slice and those behind it that its triggers need."""
own_hit_count = hits.per_event("own", U32, role=Role.OUTPUT)
"""Hits of the sub-slice itself, the first ones."""

candidates = Collection(
    "candidates",
    capacity=lambda limits: MAX_CANDIDATES * limits.events,
    placement=Placement.fixed(MAX_CANDIDATES),
    max_per_event=MAX_CANDIDATES,
)
candidate_count = candidates.per_event("count", U32, role=Role.OUTPUT)
candidate = candidates.column("candidate", CANDIDATE)

windows = Collection(
    "windows",
    capacity=lambda limits: MAX_WINDOWS * limits.events,
    placement=Placement.fixed(MAX_WINDOWS),
    max_per_event=MAX_WINDOWS,
)
window_count = windows.per_event("count", U32, role=Role.OUTPUT)
window = windows.column("window", WINDOW)
event_number = events.per_event("number", U32, width=2)
"""[event][2]: number of the time slice, low 32 bits, and number of the sub-slice in it."""
