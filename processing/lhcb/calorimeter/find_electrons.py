"""ecal_find_electrons: energies in the calorimeter along long tracks and along their VELO tracks."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.calorimeter.collections import (
    ecal_adc,
    ecal_geometry,
    electron_count,
    long_brem_energy,
    long_brem_et,
    long_ecal_energy,
    long_eop,
    long_in_ecal,
    long_is_electron,
)
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_qop, long_state, long_velo_track
from hltnode.processing.lhcb.velo.collections import beamline_state

find_electrons = Algorithm.beside(
    __file__,
    prefix="ecal",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        ecal_geometry,
        ecal_adc,
        long_count,
        long_velo_track,
        long_qop,
        *long_state.values(),
        *(beamline_state[name] for name in ("x", "y", "z", "tx", "ty")),
    ),
    writes=(
        long_in_ecal,
        long_ecal_energy,
        long_eop,
        long_is_electron,
        long_brem_energy,
        long_brem_et,
        electron_count,
    ),
    # docs/physics/calorimeter.md.
    constants={"min_eop": 0.7, "min_brem_et": 50.0},
)
"""`min_brem_et` in MeV."""
