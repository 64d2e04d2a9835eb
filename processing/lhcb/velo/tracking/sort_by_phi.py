"""velo_sort_by_phi: hits sorted by phi inside each module pair."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import U16, U64
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.velo import collections as velo

sort_by_phi = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=128,
    large_events=velo.large_events,
    reads=(*(each for each in velo.unsorted_columns if each is not velo.unsorted_module_pair), velo.velo_geometry),
    updates=(event_flags, velo.unsorted_module_pair),
    writes=(
        velo.hit_x,
        velo.hit_y,
        velo.hit_z,
        velo.hit_phi,
        velo.hit_id,
        velo.cluster_count,
        velo.module_pair_offset,
        velo.phi_bin_offset,
    ),
    scratch=(Scratch("sort_key", U64, per=velo.clusters), Scratch("sort_index", U16, per=velo.clusters)),
)
"""Its scratch holds phi and id of each hit, and the place of the hit among the unsorted hits."""
