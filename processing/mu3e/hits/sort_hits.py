"""mu3e_sort_hits: the hits of each sub-slice, with those of its neighbours near its edges, by layer and time."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.mu3e.detector_constants import FRAME_NS, MARGIN_BEFORE, MARGIN_BEHIND, SUB_SLICE_NS
from hltnode.processing.mu3e.geometry.sensor_table import sensor_table
from hltnode.processing.mu3e.hits.collections import (
    event_number,
    group_begin,
    hit,
    hit_count,
    hit_x,
    hit_y,
    hit_z,
    own_hit_count,
)

HIT_WINDOW = 20
"""ns between the first and the last hit of a triplet. Times of hits have an error of 3 ns."""
RECURL_WINDOW = 40
"""ns between the first hit of a triplet and a recurling hit, which is up to 10 ns of flight later."""
LENGTHS = range(200, 60_001)
"""ns that a sub-slice may have. Its tracks reach into the next one at most."""
TIME_WINDOWS = range(1, 101)
HIT_WINDOWS = range(1, 51)

TIMES = {"length": SUB_SLICE_NS, "time_window": FRAME_NS, "hit_window": HIT_WINDOW, "recurl_window": RECURL_WINDOW}
TIMES_ALLOWED = {
    "length": LENGTHS,
    "time_window": TIME_WINDOWS,
    "hit_window": HIT_WINDOWS,
    "recurl_window": HIT_WINDOWS,
}
"""Constants that several kernels share. time_window: ns in which all hits of a candidate lie."""

sort_hits = Algorithm.beside(
    __file__,
    prefix="mu3e",
    grid=Grid.EVENTS,
    block_size=128,
    reads=(raw_banks, sensor_table),
    updates=(event_flags,),
    writes=(hit, hit_x, hit_y, hit_z, hit_count, own_hit_count, group_begin, event_number),
    constants={**TIMES, "margin_before": MARGIN_BEFORE, "margin_behind": MARGIN_BEHIND},
    allowed={**TIMES_ALLOWED, "margin_before": range(3), "margin_behind": range(3)},
    shared=tuple(TIMES),
)
"""margin_before, margin_behind: sub-slices at either end of a time slice in which no candidate begins."""
