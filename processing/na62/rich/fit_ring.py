"""rich_fit_ring: one circle through all hits of an event."""

from hltnode.processing.framework.batch import event_flags, mfp_rows
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.na62.rich.collections import Fit, hit_count, hit_x, hit_y, ring, ring_count

RESOLUTION = 5.0
"""mm: standard deviation of the distance of a hit from its ring. Tubes in cells of 18 mm give 4.7 mm."""
MIN_SPREAD = 1e-4
"""Product of the two variances of the points along their main axes, relative to the square of the sum; below it they
lie on a line. Half a circle has 0.07, an arc of 30 degrees 0.005."""

fit_ring = Algorithm.beside(
    __file__,
    grid=Grid.ROWS,
    block_size=64,
    reads=(mfp_rows, hit_count, hit_x, hit_y),
    updates=(event_flags, ring_count),
    writes=(ring,),
    constants={"method": int(Fit.FIT_TAUBIN), "resolution": RESOLUTION, "min_spread": MIN_SPREAD},
    allowed={"method": range(len(Fit))},
)
"""method: 0 linear least squares, 1 Taubin, 2 Pratt."""
