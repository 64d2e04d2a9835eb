"""muon_measure_tracks: what tells muons from other long tracks: features of trees, and the line of the muon hits."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.muon import collections as muon
from hltnode.processing.lhcb.tracks.kalman.collections import long_beam_state
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_qop, long_state

measure_tracks = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        long_count,
        long_qop,
        *long_state.values(),
        long_beam_state["ty"],
        muon.long_muon_hits,
        muon.muon_station_offset,
        muon.muon_x,
        muon.muon_y,
        muon.muon_z,
        muon.muon_dx,
        muon.muon_dy,
        muon.muon_time,
        muon.muon_time_y,
    ),
    writes=(muon.long_muon_features, muon.long_muon_stub),
)
