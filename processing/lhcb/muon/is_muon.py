"""is_muon: long tracks with hits in the muon stations near their extrapolation."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.muon import collections as muon
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_qop, long_state

is_muon = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        muon.muon_field_of_interest,
        long_count,
        long_qop,
        *long_state.values(),
        muon.muon_station_offset,
        muon.muon_x,
        muon.muon_y,
        muon.muon_z,
        muon.muon_dx,
        muon.muon_dy,
        muon.muon_tile,
    ),
    writes=(muon.long_is_muon, muon.long_muon_hits),
    # MeV; docs/physics/muon.md.
    constants={"min_p": 3000.0, "one_behind_p": 6000.0, "two_behind_p": 10_000.0, "field_scale": 1.2},
)
