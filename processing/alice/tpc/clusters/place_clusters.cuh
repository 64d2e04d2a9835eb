// Prefix sum of the clusters over the slices of all events.
//
// In:  tpc_slices.input [slice]. Out: tpc_slices.first_cluster [slice + 1], events.first_cluster [event + 1]. One
// block; threads stride over the slices. Bound: clusters have 8 bytes of input each, so all have a place.
#pragma once

#include "alice/tpc/clusters/generated/tpc_place_clusters.h"
#include "framework/generated/launch_types.h"

HLT_KERNEL(tpc_place_clusters)
{
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t n_events = p.batch->n_events;
    const uint32_t n_slices = n_events * hlt::tpc_slices;
    uint32_t running = 0;
    for (uint32_t base = 0; base < n_slices; base += blockDim.x) {
        const uint32_t slice = base + threadIdx.x;
        const uint32_t n = slice < n_slices ? p.tpc_slices.input[slice].n_clusters : 0u;
        uint32_t total;
        const uint32_t first = running + hlt::block_exclusive_sum(n, scratch, total);
        running += total;
        if (slice >= n_slices) continue;
        p.tpc_slices.first_cluster[slice] = first;
        if (slice % hlt::tpc_slices == 0u) p.events.first_cluster[slice / hlt::tpc_slices] = first;
    }
    if (threadIdx.x == 0) {
        p.tpc_slices.first_cluster[n_slices] = running;
        p.events.first_cluster[n_events] = running;
    }
}
