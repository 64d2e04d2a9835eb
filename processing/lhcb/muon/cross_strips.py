"""muon_cross_strips: strips and pads to hits."""

from hltnode.processing.framework.batch import raw_banks
from hltnode.processing.framework.collections import U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.muon import collections as muon

cross_strips = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        raw_banks,
        muon.muon_geometry,
        muon.muon_lit_cells,
        muon.muon_crossed_cells,
        muon.muon_bound,
        muon.muon_hit_offset,
    ),
    writes=(
        muon.muon_count,
        muon.muon_station_offset,
        muon.muon_x,
        muon.muon_y,
        muon.muon_z,
        muon.muon_dx,
        muon.muon_dy,
        muon.muon_tile,
        muon.muon_time,
        muon.muon_time_y,
    ),
    scratch=(Scratch("cell_time", U32, per=muon.muon_hits, width=2),),
)
"""Its scratch holds the time of each active cell; a hit has at most two cells."""
