"""global_event_cut: events with more UT and SciFi clusters than are reconstructed."""

from hltnode.processing.framework.batch import event_flags, events, raw_banks
from hltnode.processing.framework.collections import U32
from hltnode.processing.framework.declaration import Algorithm, Grid

MAX_CLUSTERS = 9750
"""D. Cámpora Pérez, PhD thesis, Universidad de Sevilla, section 8.2: about a tenth of the crossings has more."""

ut_clusters = events.per_event("ut_clusters", U32)
scifi_clusters = events.per_event("scifi_clusters", U32)
"""Clusters that the banks of each event announce, cut or not."""

global_event_cut = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.EVENTS,
    block_size=128,
    reads=(raw_banks,),
    updates=(event_flags,),
    writes=(ut_clusters, scifi_clusters),
    constants={
        "max_ut_clusters": MAX_CLUSTERS,
        "max_scifi_clusters": MAX_CLUSTERS,
        "max_clusters": MAX_CLUSTERS,
    },
)
"""`max_clusters` is for the sum of both."""
