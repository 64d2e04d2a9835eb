"""muon_find_cells: the active strips and pads of each event, and the number of their hits."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.muon.collections import muon_bound, muon_crossed_cells, muon_geometry, muon_lit_cells

find_cells = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(raw_banks, muon_geometry),
    updates=(event_flags,),
    writes=(muon_lit_cells, muon_crossed_cells, muon_bound),
)
