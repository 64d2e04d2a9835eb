"""muon_hit_offsets: places of the muon hits of each event."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.muon.collections import muon_bound, muon_hit_offset, muon_hits

hit_offsets = Algorithm.beside(
    __file__,
    grid=Grid.ONE,
    block_size=256,
    updates=(event_flags, muon_bound),
    writes=(muon_hit_offset,),
    # docs/physics/muon.md: 30 times the largest real event.
    constants={"max_hits": 16_384},
    capacities={"max_muon_hits": muon_hits.capacity},
)
