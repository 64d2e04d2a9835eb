"""kalman_impact_parameter: the primary vertex of each long track, and its impact parameter."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.primary_vertices.collections import pv_count, vertices
from hltnode.processing.lhcb.tracks.kalman.collections import long_beam_state, long_ip, long_ip_chi2, long_pv
from hltnode.processing.lhcb.tracks.long.collections import long_count

impact_parameter = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        long_count,
        *(state for name, state in long_beam_state.items() if name != "qop"),
        vertices,
        pv_count,
    ),
    writes=(long_ip, long_ip_chi2, long_pv),
)
