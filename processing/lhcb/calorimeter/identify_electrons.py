"""ecal_identify_electrons: the response of the electron network for long tracks."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.calorimeter.collections import (
    long_brem_energy,
    long_ecal_cell,
    long_electron_nn,
    long_eop,
    long_shower,
)
from hltnode.processing.lhcb.calorimeter.electron_network import ElectronNetwork, electron_network
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_qop

_WEIGHTS = ElectronNetwork.builtin().checksum

identify_electrons = Algorithm.beside(
    __file__,
    prefix="ecal",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(electron_network, long_count, long_qop, long_eop, long_brem_energy, long_ecal_cell, *long_shower.values()),
    writes=(long_electron_nn,),
    constants={"weights": _WEIGHTS},
    allowed={"weights": range(_WEIGHTS, _WEIGHTS + 1)},
)
"""`weights`: checksum of the network. It is a constant so that the key of a configuration changes with the network; no
other value is allowed, and the kernel does not read it."""
