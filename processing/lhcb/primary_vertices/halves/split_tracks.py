"""velo_halves_split_tracks: the tracks of each half of the VELO that may make primary vertices, packed."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.primary_vertices.halves.collections import (
    half_fit_weight,
    half_track_counts,
    half_track_lines,
    half_weight,
)
from hltnode.processing.lhcb.velo.collections import (
    beamline_state,
    hit_id,
    large_events,
    track_count,
    track_hit_count,
    track_hits,
)

split_tracks = Algorithm.beside(
    __file__,
    prefix="velo_halves",
    grid=Grid.EVENTS,
    block_size=128,
    large_events=large_events,
    reads=(
        *(track_count, track_hit_count, track_hits, hit_id),
        *(beamline_state[name] for name in ("x", "y", "z", "tx", "ty", "c00")),
    ),
    writes=(half_track_counts, *half_track_lines, half_weight, half_fit_weight),
    # As pv_beamline_extrapolate.
    constants={"min_variance_scale": 0.6, "max_variance_scale": 1.5, "variance_slope": 0.02},
)
