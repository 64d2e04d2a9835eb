"""matching_select_seeding_hits: the SciFi hits that no long track has used, in their order."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_x, scifi_zone_offset
from hltnode.processing.lhcb.tracks.long.collections import (
    scifi_used,
    seeding_bins,
    seeding_cells,
    seeding_hit,
    seeding_x,
)

select_seeding_hits = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(scifi_count, scifi_zone_offset, scifi_x, scifi_used),
    writes=(seeding_bins, seeding_cells, seeding_x, seeding_hit),
)
