// Preparation of the forward search: no VELO track has a candidate, no SciFi hit an owner, and bins of x index the hits
// (docs/physics/long-tracks.md).
//
// In:  scifi_hits.{count, zone_offset, x}, velo_tracks.count.
// Out: forward_candidates.{hit_count, ut_track} [VELO track], scifi_hits.owner [hit], scifi_hits.bins [event][24][272],
//      scifi_hits.cells [event][24 * 256 + 8].
// One block per event; threads stride over candidates, hits and bins.
#pragma once

#include "lhcb/tracks/forward/generated/forward_prepare_candidates.h"
#include "lhcb/tracks/long/scifi_zones.cuh"
#include "lhcb/ut/generated/ut_types.h"

HLT_KERNEL(forward_prepare_candidates)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t n_tracks = hlt::min_of(p.velo_tracks.count[event], hlt::max_long_tracks);
    const uint32_t first_candidate = p.forward_candidates.first(event), first_hit = p.scifi_hits.first(event);
    const uint32_t n_hits = p.scifi_hits.count[event];
    for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x) {
        p.forward_candidates.hit_count[first_candidate + i] = 0;
        p.forward_candidates.ut_track[first_candidate + i] = hlt::no_ut_track;
    }
    if (n_hits == 0u || n_tracks == 0u) return;
    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) p.scifi_hits.owner[first_hit + i] = hlt::no_bid;

    hlt::fill_scifi_zones({p.scifi_hits.x, first_hit}, p.scifi_hits.zone_offset + event * hlt::scifi_zone_stride,
                          {p.scifi_hits.bins, event * hlt::n_scifi_zones * hlt::scifi_bin_stride},
                          p.scifi_hits.cells + event * hlt::scifi_cell_stride);
}
