// Where the clusters of each event lie: prefix sum of the bounds, with some places left free behind each event.
//
// An event with more clusters than a 16-bit index reaches, or that no longer fits in the buffers, gets bound 0 and is
// flagged: it is kept, without clusters.
// In:  velo_clusters.bound [event]. Out: velo_clusters.offset [event + 1]; velo_clusters.bound, events.flags.
// One block; threads stride over the events.
// Bounds: offsets never exceed max_velo_clusters, the size of every buffer of clusters.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/velo/generated/velo_cluster_offsets.h"
#include "lhcb/velo/hit.cuh"

HLT_KERNEL(velo_cluster_offsets)
{
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t n = p.batch->n_events;

    uint32_t running = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t event = base + threadIdx.x;
        const uint32_t wanted = event < n ? p.velo_clusters.bound[event] : 0;
        const uint32_t bound = wanted <= hlt::max_velo_clusters_of_event ? wanted : 0;
        uint32_t total;
        const uint32_t places = bound > 0u ? bound + hlt::velo_hit_padding : 0u;
        const uint32_t offset = running + hlt::block_exclusive_sum(places, scratch, total);
        const bool fits = offset <= p.max_velo_clusters && places <= p.max_velo_clusters - offset;
        if (event < n) {
            p.velo_clusters.offset[event] = hlt::min_of(offset, p.max_velo_clusters);
            p.velo_clusters.bound[event] = fits ? bound : 0;
            if (!fits || bound != wanted) p.events.flags[event] |= hlt::overflow;
        }
        running = hlt::min_of(running + total, p.max_velo_clusters + 1u);
    }
    if (threadIdx.x == 0) p.velo_clusters.offset[n] = hlt::min_of(running, p.max_velo_clusters);
}
