"""scifi_decode_clusters: SciFi banks to hits sorted by x in each zone."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.collections import U16
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.scifi import collections as scifi

decode_clusters = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=256,
    reads=(raw_banks, scifi.scifi_mats, scifi.scifi_read_out, scifi.scifi_sipms, scifi.scifi_bound),
    updates=(event_flags,),
    writes=(
        scifi.scifi_count,
        scifi.scifi_zone_offset,
        scifi.scifi_x,
        scifi.scifi_z,
        scifi.scifi_id,
        scifi.scifi_info,
    ),
    scratch=(Scratch("codes", U16, per=scifi.scifi_hits),),
    # 1: each word is a hit, whatever the version of its bank.
    constants={"lossy": 0},
)
