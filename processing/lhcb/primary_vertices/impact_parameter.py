"""velo_impact_parameter: distance of each VELO track from its primary vertex."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.primary_vertices.collections import pv_count, vertices
from hltnode.processing.lhcb.velo.collections import (
    beamline_state,
    large_events,
    track_count,
    track_ip,
    track_ip_chi2,
    track_pv,
)

impact_parameter = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=128,
    large_events=large_events,
    reads=(track_count, *beamline_state.values(), vertices, pv_count),
    writes=(track_ip, track_ip_chi2, track_pv),
)
