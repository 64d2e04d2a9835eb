"""downstream_find_v0s: vertices of two downstream tracks, and their fields for lines."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.primary_vertices.collections import pv_count, vertices
from hltnode.processing.lhcb.secondary_vertices.downstream.collections import (
    downstream_v0_count,
    downstream_v0_fit,
    downstream_v0_kind,
    downstream_v0_masses,
    downstream_v0_momentum,
    downstream_v0_position,
    downstream_v0_pv,
    downstream_v0_tracks,
)
from hltnode.processing.lhcb.secondary_vertices.downstream.field import v0_field
from hltnode.processing.lhcb.tracks.downstream.collections import (
    downstream_count,
    downstream_search,
    downstream_state,
)

find_v0s = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        v0_field,
        downstream_count,
        *downstream_state.values(),
        downstream_search["y_distance"],
        vertices,
        pv_count,
    ),
    updates=(event_flags,),
    writes=(
        downstream_v0_count,
        downstream_v0_tracks,
        downstream_v0_kind,
        downstream_v0_pv,
        *downstream_v0_position.values(),
        *downstream_v0_fit.values(),
        *downstream_v0_momentum.values(),
        *downstream_v0_masses.values(),
    ),
    # docs/physics/downstream-v0s.md
    constants={
        "min_z": 300.0,
        "max_z": 2300.0,
        "max_doca": 10.0,
        "max_chi2": 20.0,
        "max_ip": 30.0,
        "ks_min_mass": 400.0,
        "ks_max_mass": 600.0,
        "lambda_max_mass": 1170.0,
        "photon_max_mass": 80.0,
    },
)
"""mm and MeV. `max_ip`: distance of the line of flight from the nearest primary vertex; without one there is no
vertex."""
