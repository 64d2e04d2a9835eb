"""global_event_cut: rejects events with too many UT and SciFi clusters."""

from hltnode.processing.framework.batch import event_flags, events, raw_banks
from hltnode.processing.framework.collections import U32
from hltnode.processing.framework.declaration import Algorithm, Grid

MAX_CLUSTERS = 9750
"""D. Cámpora Pérez, PhD thesis, Universidad de Sevilla, section 8.2: about a tenth of the crossings have more."""

ut_clusters = events.per_event("ut_clusters", U32)
scifi_clusters = events.per_event("scifi_clusters", U32)
"""Number of clusters that the banks of each event announce, also for rejected events."""

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
"""`max_clusters` is the limit for the sum of UT and SciFi clusters."""
