"""ecal_pair_photons: pairs of photons, their masses and momenta."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.calorimeter.collections import (
    cluster_count,
    cluster_e19,
    cluster_energy,
    cluster_et,
    cluster_position,
    photon_pair_clusters,
    photon_pair_count,
    photon_pair_numbers,
)

pair_photons = Algorithm.beside(
    __file__,
    prefix="ecal",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(cluster_count, *cluster_position.values(), cluster_energy, cluster_et, cluster_e19),
    updates=(event_flags,),
    writes=(photon_pair_count, photon_pair_clusters, *photon_pair_numbers.values()),
    # docs/physics/calorimeter.md.
    constants={"min_et": 400.0, "min_e19": 0.6},
)
"""`min_et` in MeV."""
