"""secondary_vertices_select_tracks: the long tracks that may be part of a secondary vertex, packed."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.muon.collections import long_is_muon
from hltnode.processing.lhcb.secondary_vertices.collections import (
    vertex_track_count,
    vertex_track_ip_chi2,
    vertex_track_line,
    vertex_track_number,
    vertex_track_use,
)
from hltnode.processing.lhcb.tracks.kalman.collections import long_beam_state, long_chi2, long_ip, long_ip_chi2, long_pv
from hltnode.processing.lhcb.tracks.long.collections import long_count

select_tracks = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        long_count,
        *(long_beam_state[name] for name in ("x", "y", "z", "tx", "ty", "qop")),
        long_chi2,
        long_ip,
        long_ip_chi2,
        long_pv,
        long_is_muon,
    ),
    writes=(
        vertex_track_count,
        vertex_track_number,
        vertex_track_use,
        *vertex_track_line.values(),
        vertex_track_ip_chi2,
    ),
    constants={
        "max_chi2": 10.0,
        "displaced_min_pt": 200.0,
        "displaced_min_ip": 0.06,
        "displaced_min_ip_chi2": 4.0,
        "v0_min_pt": 80.0,
        "v0_min_ip": 0.08,
        "v0_min_ip_chi2": 12.0,
        "v0_far_min_ip": 0.2,
        "v0_far_min_ip_chi2": 32.0,
    },
)
"""pt in MeV, IP in mm; chi2 of the fit divided by its degrees of freedom."""
