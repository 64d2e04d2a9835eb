// Before the forward search: no VELO track has a candidate, no SciFi hit an owner (docs/physics/long-tracks.md).
//
// One block per event; threads stride over candidates and over hits.
#pragma once

#include "lhcb/long_tracks/generated/long_tracks_prepare_candidates.h"
#include "lhcb/long_tracks/generated/long_types.h"

HLT_KERNEL(long_tracks_prepare_candidates)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t n_tracks = hlt::min_of(p.velo_tracks.count[event], hlt::max_long_tracks);
    const uint32_t first_candidate = p.forward_candidates.first(event), first_hit = p.scifi_hits.first(event);
    for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x)
        p.forward_candidates.hit_count[first_candidate + i] = 0;
    for (uint32_t i = threadIdx.x; i < p.scifi_hits.count[event]; i += blockDim.x)
        p.scifi_hits.owner[first_hit + i] = hlt::no_bid;
}
