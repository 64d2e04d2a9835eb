// Empty long tracks and no used SciFi hits: the input of the seeding in a sequence without forward tracking.
//
// Out: scifi_hits.used, long_tracks.count; the other columns of long_tracks are empty.
// One block per event; threads stride over hits.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/matching/generated/matching_no_forward_tracks.h"

HLT_KERNEL(matching_no_forward_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first = p.scifi_hits.first(event);
    const uint32_t n_hits = p.scifi_hits.count[event];
    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) p.scifi_hits.used[first + i] = 0;
    if (threadIdx.x == 0) p.long_tracks.count[event] = 0;
}
