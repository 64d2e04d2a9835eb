"""velo_large_clusters: pixels of the clusters of VELO tracks near the beam, and large clusters of each track."""

from hltnode.processing.framework.batch import raw_banks
from hltnode.processing.framework.collections import U16, U32
from hltnode.processing.framework.declaration import Algorithm, Grid, Scratch
from hltnode.processing.lhcb.velo.collections import (
    MAX_HITS_PER_TRACK,
    beamline_state,
    cluster_count,
    clusters,
    hit_id,
    hit_pixels,
    large_events,
    retina_sizes,
    track_backward,
    track_count,
    track_hit_count,
    track_hits,
    track_large_clusters,
)

large_clusters = Algorithm.beside(
    __file__,
    prefix="velo",
    grid=Grid.EVENTS,
    block_size=64,
    large_events=large_events,
    reads=(
        raw_banks,
        retina_sizes,
        cluster_count,
        hit_id,
        track_count,
        track_hit_count,
        track_hits,
        track_backward,
        beamline_state["tx"],
        beamline_state["ty"],
    ),
    writes=(hit_pixels, track_large_clusters),
    scratch=(
        Scratch("is_listed", U32, per=clusters),
        Scratch("listed", U16, per=clusters),
        Scratch("words", U32, per=clusters),
        Scratch("links", U32, per=clusters),
    ),
    # docs/physics/large-clusters.md
    constants={"min_pixels": 4, "min_hits": 5, "max_slope": 0.0136},
    allowed={"min_pixels": range(1, 256), "min_hits": range(1, MAX_HITS_PER_TRACK + 1)},
)
"""A hit with `min_pixels` pixels is large. Tracks with `min_hits` hits, at most `max_slope` from the z axis (0.0136 is
η = 4.99) and not to negative z are counted. Its scratch holds the hits of these tracks, a bit for each of them, and the
words of one sensor in chains."""
