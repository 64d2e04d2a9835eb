"""km3net_find_candidates: the hits of each sub-slice that begin a candidate, and the windows of time that are kept."""

from hltnode.processing.framework.batch import event_flags, event_rows, mep_rows, mfp_rows
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.km3net.detector_constants import (
    LIGHT_NS_PER_METRE,
    MARGIN_BEFORE,
    MARGIN_BEHIND,
    SUB_SLICE_NS,
    WINDOW_REACH_NS,
)
from hltnode.processing.km3net.geometry.pmt_table import pmt_table
from hltnode.processing.km3net.hits.collections import (
    MAX_TESTED,
    candidate,
    candidate_count,
    hit,
    hit_count,
    own_hit_count,
    window,
    window_count,
)
from hltnode.processing.km3net.hits.sort_hits import LENGTHS, TIME_WINDOW, TIME_WINDOWS

_COUNTS = range(1, MAX_TESTED + 1)
_COINCIDENCES = range(1, WINDOW_REACH_NS + 1)

find_candidates = Algorithm.beside(
    __file__,
    prefix="km3net",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(mfp_rows, mep_rows, event_rows, pmt_table, hit, hit_count, own_hit_count),
    updates=(event_flags,),
    writes=(candidate, candidate_count, window, window_count),
    constants={
        "length": SUB_SLICE_NS,
        "time_window": TIME_WINDOW,
        "min_hits": 7,
        "min_pmts": 7,
        "simple_window": 20,
        "floor_window": 100,
        "adjacent_window": 250,
        "min_charge": 300,
        "ns_per_metre": LIGHT_NS_PER_METRE,
        "causal_slack": 20.0,
        "min_causal": 6,
        "required": 0,
        "padding": 3_000,
        "margin_before": MARGIN_BEFORE,
        "margin_behind": MARGIN_BEHIND,
    },
    allowed={
        "length": LENGTHS,
        "time_window": TIME_WINDOWS,
        "min_hits": _COUNTS,
        "min_pmts": _COUNTS,
        "simple_window": _COINCIDENCES,
        "floor_window": _COINCIDENCES,
        "adjacent_window": _COINCIDENCES,
        "min_charge": range(1 << 16),
        "min_causal": _COUNTS,
        "required": range(128),
        "padding": range(1, WINDOW_REACH_NS + 1),
        "margin_before": range(3),
        "margin_behind": range(3),
    },
    shared=("length", "time_window"),
)
"""Times in ns. min_hits, min_pmts: of N7 and DN7 in time_window. simple_window, floor_window, adjacent_window: of SC,
FC and AFC. min_charge: hundredths of a photoelectron that a hit must exceed. ns_per_metre, causal_slack: two hits are
connected if light needs at least their time difference less causal_slack; min_causal: hits of a group. required:
triggers that a candidate needs besides N7, AFC and one of SC and FC. padding: kept before and behind a first hit.
margin_before, margin_behind: sub-slices at either end of a time slice in which no candidate begins."""
