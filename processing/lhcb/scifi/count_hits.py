"""scifi_count_hits: the hits of each event, bank and mat, before anything is decoded."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.scifi.collections import scifi_bank_hits, scifi_bound, scifi_mat_offset, scifi_read_out

count_hits = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=128,
    reads=(raw_banks, scifi_read_out),
    updates=(event_flags,),
    writes=(scifi_bound, scifi_bank_hits, scifi_mat_offset),
    # 1: each word is a hit, whatever the version of its bank. Faster by a little; a fifth of the true ids is lost.
    constants={"lossy": 0},
)
