"""pv_beamline_extrapolate: the tracks that may make primary vertices, packed."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.primary_vertices.collections import (
    pv_fit_weight,
    pv_track_count,
    pv_track_lines,
    pv_weight,
)
from hltnode.processing.lhcb.velo.collections import beamline_state, large_events, track_count

extrapolate = Algorithm.beside(
    __file__,
    prefix="pv_beamline",
    grid=Grid.EVENTS,
    block_size=128,
    large_events=large_events,
    reads=(track_count, *(beamline_state[name] for name in ("x", "y", "z", "tx", "ty", "c00"))),
    writes=(pv_track_count, *pv_track_lines, pv_weight, pv_fit_weight),
    # Ratio of the variance in x and y of the fit to that of the filter: along the beam, and at slopes far above
    # `variance_slope`.
    constants={"min_variance_scale": 0.6, "max_variance_scale": 1.5, "variance_slope": 0.02},
)
