"""find_jets: long tracks of one primary vertex and photons in cones around the hardest tracks."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.calorimeter.collections import (
    cluster_count,
    cluster_e19,
    cluster_et,
    cluster_position,
    cluster_seed,
    long_ecal_cell,
)
from hltnode.processing.lhcb.jets.collections import jet_count, jet_numbers, jet_parts, jet_pv, jet_seed
from hltnode.processing.lhcb.tracks.kalman.collections import long_beam_state, long_ghost_probability, long_pv
from hltnode.processing.lhcb.tracks.long.collections import long_count

find_jets = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        long_count,
        *(long_beam_state[name] for name in ("tx", "ty", "qop")),
        long_pv,
        long_ghost_probability,
        long_ecal_cell,
        cluster_count,
        *cluster_position.values(),
        cluster_et,
        cluster_e19,
        cluster_seed,
    ),
    updates=(event_flags,),
    writes=(jet_count, *jet_numbers.values(), *jet_parts.values(), jet_seed, jet_pv),
    # docs/physics/jets.md
    constants={
        "radius": 0.5,
        "min_seed_pt": 1500.0,
        "min_track_pt": 250.0,
        "max_ghost_probability": 0.5,
        "min_photon_et": 400.0,
        "min_photon_e19": 0.6,
    },
)
"""`radius` of a cone in pseudorapidity and azimuth. Transverse momenta and energies of seeds, other tracks and photons
in MeV."""
