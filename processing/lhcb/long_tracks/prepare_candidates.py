"""long_tracks_prepare_candidates: the forward search begins without candidates."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.long_tracks.collections import candidate_columns, scifi_owner
from hltnode.processing.lhcb.scifi.collections import scifi_count
from hltnode.processing.lhcb.velo.collections import track_count

prepare_candidates = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(track_count, scifi_count),
    writes=(*candidate_columns, scifi_owner),
)
