"""muon_identify_tracks: the response of the muon network for long tracks."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.calorimeter.collections import long_ecal_energy
from hltnode.processing.lhcb.muon import collections as muon
from hltnode.processing.lhcb.muon.muon_network import MuonNetwork, muon_network
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_qop, long_state

_WEIGHTS = MuonNetwork.builtin().checksum

identify_tracks = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        muon_network,
        long_count,
        long_qop,
        long_state["tx"],
        long_state["ty"],
        muon.long_muon_hits,
        muon.long_muon_chi2,
        muon.long_muon_features,
        muon.long_muon_stub,
        long_ecal_energy,
    ),
    writes=(muon.long_muon_nn,),
    constants={"weights": _WEIGHTS},
    allowed={"weights": range(_WEIGHTS, _WEIGHTS + 1)},
)
"""`weights`: checksum of the network. It is a constant so that the key of a configuration changes with the network; no
other value is allowed, and the kernel does not read it."""
