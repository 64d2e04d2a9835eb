// Marks the SciFi hits of the long tracks found so far; a later search skips them.
//
// In:  scifi_hits.count, long_tracks.{count, hits}. Out: scifi_hits.used.
// One block per event; threads stride over hits, then over tracks. All threads that mark a hit write the same value.
// Bounds: hits of tracks lie below scifi_hits.count.
#pragma once

#include "lhcb/scifi/generated/scifi_types.h"
#include "lhcb/tracks/matching/generated/matching_mark_used_hits.h"

HLT_KERNEL(matching_mark_used_hits)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    uint8_t* const used = p.scifi_hits.used + p.scifi_hits.first(event);
    const uint16_t* const hits = p.long_tracks.hits + hlt::n_scifi_layers * p.long_tracks.first(event);
    const uint32_t n_hits = p.scifi_hits.count[event];
    const uint32_t n_places = hlt::n_scifi_layers * p.long_tracks.count[event];

    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) used[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n_places; i += blockDim.x)
        if (hits[i] != hlt::no_scifi_hit) used[hits[i]] = 1;
}
