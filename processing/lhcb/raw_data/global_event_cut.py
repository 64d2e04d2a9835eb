"""global_event_cut: rejects events with too many UT, SciFi and VELO clusters."""

from hltnode.processing.framework.batch import event_flags, events, raw_banks
from hltnode.processing.framework.collections import U32
from hltnode.processing.framework.declaration import Algorithm, Grid

MAX_CLUSTERS = 9750
"""D. Cámpora Pérez, PhD thesis, Universidad de Sevilla, section 8.2: about a tenth of the crossings have more."""

NO_LIMIT = 2**32 - 1

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
    allowed={"count_padding": range(2)},
    added={"max_velo_clusters": NO_LIMIT, "count_padding": 1},
)
"""`max_clusters` is the limit for the sum of UT and SciFi clusters. VELO clusters are only counted if they have a
limit. `count_padding` 0: the padding word of a SciFi bank is no cluster, so that banks announce the words they hold."""

EVENT_CUT_OF_2025 = {
    "max_velo_clusters": 35_000,
    "max_scifi_clusters": 20_000,
    "max_ut_clusters": NO_LIMIT,
    "max_clusters": NO_LIMIT,
    "count_padding": 0,
}
"""LHCb's cut in proton collisions of 2025: UT clusters are not limited."""
