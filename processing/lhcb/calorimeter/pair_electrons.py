"""ecal_pair_electrons: pairs of electrons with a common vertex."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.calorimeter.collections import (
    dielectron_count,
    dielectron_numbers,
    dielectron_pv,
    dielectron_same_sign,
    dielectron_tracks,
    long_brem_energy,
    long_is_electron,
)
from hltnode.processing.lhcb.primary_vertices.collections import pv_count, vertices
from hltnode.processing.lhcb.tracks.kalman.collections import long_beam_state, velo_field
from hltnode.processing.lhcb.tracks.long.collections import long_count

pair_electrons = Algorithm.beside(
    __file__,
    prefix="ecal",
    grid=Grid.EVENTS,
    block_size=32,
    reads=(
        *(velo_field, long_count, long_is_electron, long_brem_energy),
        *long_beam_state.values(),
        *(vertices, pv_count),
    ),
    updates=(event_flags,),
    writes=(
        *(dielectron_count, dielectron_tracks, dielectron_same_sign, dielectron_pv),
        *dielectron_numbers.values(),
    ),
    # docs/physics/calorimeter.md.
    constants={"max_doca": 0.5, "max_chi2": 30.0},
)
"""`max_doca` in mm."""
