"""The chain `km3net`: triggers of an underwater neutrino telescope on a stream of hits."""

from pathlib import Path

import numpy as np

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.streaming import ClockOffsets, HitLayout, Streaming
from hltnode.processing.km3net.detector_constants import (
    MARGIN_BEFORE,
    MARGIN_BEHIND,
    SUB_SLICE_NS,
    WINDOW_REACH_NS,
)
from hltnode.processing.km3net.geometry.detector import table_bytes
from hltnode.processing.km3net.geometry.pmt_table import pmt_table, pmt_types
from hltnode.processing.km3net.hits.collections import (
    N_SOURCES,
    candidate_count,
    clock_offset,
    km3net_types,
    own_hit_count,
    window_count,
)
from hltnode.processing.km3net.hits.flags import km3net_flag_types
from hltnode.processing.km3net.hits.sort_hits import sort_hits
from hltnode.processing.km3net.lines.histograms import KM3NET_HISTOGRAMS
from hltnode.processing.km3net.lines.inputs import EVENT_WORDS, INPUTS, USUAL_FIELDS
from hltnode.processing.km3net.lines.menu import KM3NET_MENU
from hltnode.processing.km3net.readout import TELESCOPE_READOUT
from hltnode.processing.km3net.triggers.find_candidates import find_candidates
from hltnode.processing.km3net.triggers.lists import CANDIDATES, WINDOWS
from hltnode.processing.selection.event_rate import EventRate
from hltnode.processing.selection.lines.line import selection_types
from hltnode.processing.selection.trigger_chain import Sequence, TriggerChain
from hltnode.protocol.km3net.hit_banks import HIT, KM3NET_SUBDETECTOR, TIME_OFFSET

SEQUENCES = {
    "muon_windows": Sequence(
        algorithms=AlgorithmSequence((fragment_offsets, sort_hits, find_candidates)),
        subdetectors=frozenset({KM3NET_SUBDETECTOR}),
        counts={"km3net_hits": own_hit_count, "candidates_found": candidate_count, "windows": window_count},
        lists=(CANDIDATES, WINDOWS),
    ),
}

STREAMING = Streaming(
    sub_slice_ns=SUB_SLICE_NS,
    margin_before=MARGIN_BEFORE,
    margin_behind=MARGIN_BEHIND,
    hit=HitLayout(size=HIT.itemsize, time_offset=TIME_OFFSET),
    subdetectors=frozenset({KM3NET_SUBDETECTOR}),
    constants={"sub_slice_ns": "length", "margin_before": "margin_before", "margin_behind": "margin_behind"},
    clock_offsets=ClockOffsets(column=clock_offset.name, size=N_SOURCES, reach_ns=WINDOW_REACH_NS),
    # 51 ms. A node spends some ms on each slice, whatever its length; two of them fit a batch of 4,096 events.
    sub_slices=2046,
)

CHAIN = TriggerChain.offering(
    SEQUENCES,
    "muon_windows",
    name="km3net",
    kernels=KernelSources(
        "km3net/generated/chain_kernels.h", (PROCESSING,), "hltnode.processing.km3net._chain_kernels"
    ),
    source=Path(__file__),
    readout=TELESCOPE_READOUT,
    streaming=STREAMING,
    windows=WINDOWS.name,
    types=(km3net_flag_types, km3net_types, pmt_types, selection_types),
    event_words=EVENT_WORDS,
    menu=KM3NET_MENU,
    geometry={pmt_table.name: table_bytes, clock_offset.name: lambda _: np.zeros(4 * N_SOURCES, np.uint8)},
    histograms=KM3NET_HISTOGRAMS,
    inputs=INPUTS,
    usual_fields=USUAL_FIELDS,
    event_rate=EventRate(1e9 / SUB_SLICE_NS, "sub-slice"),
)
