// Limit of the cost of an event: the VELO chain does not reconstruct an event whose banks announce more than
// max_clusters clusters (docs/physics/velo-tracking.md).
//
// The cost of an event rises faster than its number of clusters. The sizes of the banks give a bound on that number
// before the decoding. So a dense event costs only the reading of these sizes. It is flagged and kept, without
// clusters.
// In:  velo_clusters.bound [event]. Out: velo_clusters.bound, 0 for an event that is cut; events.flags.
// One block; threads stride over the events.
// Bounds: n_events of the batch.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/raw_data/generated/flags.h"
#include "lhcb/velo/decoding/generated/velo_cluster_limit.h"

HLT_KERNEL(velo_cluster_limit)
{
    for (uint32_t event = threadIdx.x; event < p.batch->n_events; event += blockDim.x) {
        if (p.velo_clusters.bound[event] <= p.max_clusters) continue;
        p.velo_clusters.bound[event] = 0;
        p.events.flags[event] |= hlt::too_many_clusters;
    }
}
