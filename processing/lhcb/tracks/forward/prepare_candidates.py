"""forward_prepare_candidates: reset of the forward candidates, and an index of the SciFi hits."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_x, scifi_zone_offset
from hltnode.processing.lhcb.tracks.long.collections import candidate_columns, scifi_bins, scifi_cells, scifi_owner
from hltnode.processing.lhcb.velo.collections import track_count

prepare_candidates = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(track_count, scifi_count, scifi_zone_offset, scifi_x),
    writes=(*candidate_columns, scifi_bins, scifi_cells, scifi_owner),
)
