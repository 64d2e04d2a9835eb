"""muon_hit_offsets: where the muon hits of each event lie."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.muon.collections import muon_bound, muon_hit_offset, muon_hits

hit_offsets = Algorithm.beside(
    __file__,
    grid=Grid.ONE,
    block_size=256,
    updates=(event_flags, muon_bound),
    writes=(muon_hit_offset,),
    capacities={"max_muon_hits": muon_hits.capacity},
)
