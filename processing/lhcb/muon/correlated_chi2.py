"""muon_correlated_chi2: chi2 of the muon hits of a track for one muon that scatters in the absorbers."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.muon import collections as muon
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_qop, long_state

correlated_chi2 = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        long_count,
        long_qop,
        *long_state.values(),
        muon.long_muon_hits,
        muon.muon_x,
        muon.muon_y,
        muon.muon_z,
        muon.muon_dx,
        muon.muon_dy,
    ),
    updates=(muon.long_is_muon,),
    writes=(muon.long_muon_chi2,),
    # docs/physics/muon.md.
    constants={"max_chi2": 16.0},
)
