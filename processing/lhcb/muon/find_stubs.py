"""muon_find_stubs: straight lines of hits in the muon stations, without a track."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import U16, U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.muon import collections as muon

find_stubs = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        muon.muon_station_offset,
        muon.muon_x,
        muon.muon_y,
        muon.muon_z,
        muon.muon_dx,
        muon.muon_dy,
        muon.muon_tile,
    ),
    updates=(event_flags,),
    writes=(muon.stub_count, muon.stub_hits, *muon.stub_line.values(), *muon.stub_chi2.values()),
    scratch=(
        Scratch("stub_hits", U16, per=muon.muon_hits, width=3),
        Scratch("stub_chi2", U32, per=muon.muon_hits),
        Scratch("least_chi2", U32, per=muon.muon_hits),
        Scratch("first_seed", U32, per=muon.muon_hits),
    ),
    # mm, docs/physics/muon.md.
    constants={"half_width_x": 100.0, "half_width_x_m4": 400.0, "half_width_y": 45.0},
)
"""Scratch of seeds (hits in M5): hits in M2 to M4, bits of chi2; of hits: the smallest chi2, and the first seed that
has it."""
