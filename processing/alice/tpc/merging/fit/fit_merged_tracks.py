"""tpc_fit_merged_tracks: the parameters of merged tracks."""

from hltnode.processing.alice.detector_constants import CHARGED_KAON_MASS, PROTON_MASS
from hltnode.processing.alice.tpc.collections import geometry, track, track_cluster
from hltnode.processing.alice.tpc.merging.collections import (
    MERGING_PARTS,
    merged_first_segment,
    merged_ionisation,
    merged_particle,
    merged_run,
    merged_segment,
    merged_size,
    merged_track,
    merged_track_count,
    segment_first_hit,
    track_hit,
)
from hltnode.processing.alice.tpc.merging.constants import FIT_CONSTANTS
from hltnode.processing.framework.declaration import Algorithm, Grid

fit_merged_tracks = Algorithm.beside(
    __file__,
    prefix="tpc",
    grid=Grid.PARTS,
    parts=MERGING_PARTS,
    block_size=128,
    reads=(
        *(geometry, track, track_cluster, track_hit, segment_first_hit),
        *(merged_track_count, merged_first_segment, merged_size, merged_run, merged_segment),
    ),
    writes=(merged_track, merged_particle, merged_ionisation),
    constants={
        **FIT_CONSTANTS,
        "energy_loss": 1.6e-6,
        "mip_charge": 80.0,
        "kept_charges": 0.65,
        "max_charge": 1.75,
        "min_charges": 20,
        "separation": 1.15,
        "kaon_mass": CHARGED_KAON_MASS,
        "proton_mass": PROTON_MASS,
    },
    shared=FIT_CONSTANTS,
)
"""energy_loss: GeV per cm of gas of a minimum ionising particle. mip_charge: ADC counts per cm of such a particle, the
mean of the lowest `kept_charges` of its clusters. max_charge: in units of this mean of the track, the charge per cm
above which the fit inwards leaves out a cluster. min_charges: clusters of a track whose charges choose its particle.
separation: ratio of the expected ionisation of two particles above which they are told apart; below, the lighter one is
taken. kaon_mass, proton_mass: GeV/c2; `mass` is that of the pion."""
