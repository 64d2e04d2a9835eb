"""global_event_cut: events with more UT and SciFi clusters than are reconstructed."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid

MAX_CLUSTERS = 9750
"""D. Cámpora Pérez, PhD thesis, Universidad de Sevilla, section 8.2: about a tenth of the crossings has more."""

global_event_cut = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.EVENTS,
    block_size=128,
    reads=(raw_banks,),
    updates=(event_flags,),
    constants={
        "max_ut_clusters": MAX_CLUSTERS,
        "max_scifi_clusters": MAX_CLUSTERS,
        "max_clusters": MAX_CLUSTERS,
    },
)
"""`max_clusters` is for the sum of both."""
