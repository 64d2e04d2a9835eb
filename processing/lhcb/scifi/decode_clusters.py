"""scifi_decode_clusters: SciFi banks to hits sorted by x in each zone."""

from hltnode.processing.framework.batch import raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi import collections as scifi

decode_clusters = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=128,
    reads=(
        raw_banks,
        scifi.scifi_mats,
        scifi.scifi_read_out,
        scifi.scifi_bound,
        scifi.scifi_bank_hits,
        scifi.scifi_mat_offset,
    ),
    writes=(
        scifi.scifi_count,
        scifi.scifi_zone_offset,
        scifi.scifi_x,
        scifi.scifi_z,
        scifi.scifi_id,
        scifi.scifi_info,
    ),
)
