"""downstream_select_tracks: ghost probability of the continued seeds, and the list of downstream tracks."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import F32, U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.scifi.collections import scifi_hits
from hltnode.processing.lhcb.tracks.downstream.collections import (
    candidate_found,
    candidate_numbers,
    candidate_ut_hits,
    downstream_candidates,
    downstream_count,
    downstream_ghost_probability,
    downstream_hit_count,
    downstream_hits,
    downstream_search,
    downstream_seed,
    downstream_seed_quality,
    downstream_state,
    downstream_ut_hits,
)
from hltnode.processing.lhcb.tracks.downstream.ghost_network import downstream_network
from hltnode.processing.lhcb.tracks.long.collections import seed_count, seed_hit_count, seed_hits, seed_state
from hltnode.processing.lhcb.ut.collections import ut_hits

select_tracks = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        downstream_network,
        seed_count,
        seed_state["quality"],
        seed_hit_count,
        seed_hits,
        candidate_found,
        candidate_ut_hits,
        *candidate_numbers.values(),
    ),
    updates=(event_flags,),
    writes=(
        downstream_count,
        downstream_seed,
        *downstream_state.values(),
        *downstream_search.values(),
        downstream_seed_quality,
        downstream_ghost_probability,
        downstream_hit_count,
        downstream_hits,
        downstream_ut_hits,
    ),
    scratch=(
        Scratch("probability", F32, per=downstream_candidates),
        Scratch("scifi_owner", U32, per=scifi_hits),
        Scratch("ut_owner", U32, per=ut_hits),
    ),
    # docs/physics/downstream-tracks.md
    constants={"max_ghost_probability": 0.6, "max_shared_ut_hits": 1, "max_shared_scifi_hits": 3},
)
