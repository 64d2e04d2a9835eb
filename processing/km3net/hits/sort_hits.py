"""km3net_sort_hits: the hits of each sub-slice, and the first ones of the sub-slice behind it, in the order of time.

Times are corrected by the clock offset of their source.
"""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.km3net.detector_constants import SUB_SLICE_NS, WINDOW_REACH_NS
from hltnode.processing.km3net.geometry.pmt_table import pmt_table
from hltnode.processing.km3net.hits.collections import clock_offset, event_number, hit, hit_count, own_hit_count

TIME_WINDOW = 500
"""ns. N7TW500 of the tower with 20 m between floors; 40 m need 1000."""
LENGTHS = range(4_000, 1_000_001)
"""ns that a sub-slice may have. A window of 4 us reaches into the next one at most."""
TIME_WINDOWS = range(1, WINDOW_REACH_NS + 1)

sort_hits = Algorithm.beside(
    __file__,
    prefix="km3net",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(raw_banks, pmt_table, clock_offset),
    updates=(event_flags,),
    writes=(hit, hit_count, own_hit_count, event_number),
    constants={"length": SUB_SLICE_NS, "time_window": TIME_WINDOW},
    allowed={"length": LENGTHS, "time_window": TIME_WINDOWS},
    shared=("length", "time_window"),
)
