// The longest tracklet on each cluster: what all schedules of the constructor do before and after the steps of
// tracklets.
#pragma once

#include "alice/tpc/generated/tpc_flags.h"
#include "alice/tpc/tracks/tracklet.cuh"
#include "framework/device/between_blocks.cuh"

namespace hlt {

/// The start hits and clusters of the slice of a block, and what the constructor finds out about them.
struct constructed_slice {
    tracklet_input in;
    const uint32_t* starts;
    uint32_t n_starts;
    uint32_t *weights, n_clusters;  // of each cluster
    uint32_t* owned;                // of each start hit

    /// Sets all results to 0; a barrier must follow.
    __device__ void clear() const
    {
        for (uint32_t i = threadIdx.x; i < n_clusters; i += blockDim.x) weights[i] = 0;
        for (uint32_t id = threadIdx.x; id < n_starts; id += blockDim.x) owned[id] = 0;
    }

    /// Enters a tracklet at its clusters. Of equal lengths the highest number stays, so order does not matter.
    template <typename Hits>
    __device__ void enter(const Hits& hits, uint32_t first, uint32_t last, uint32_t n, uint32_t id) const
    {
        for (uint32_t row = first; row <= last; ++row) {
            const uint32_t number = hits.cluster(row);
            if (number != tpc_no_cluster) atomicMax(&weights[in.rows[row].first + number], n << 16 | id);
        }
    }

    /// Counts the clusters of which each tracklet is the longest; a barrier must be between enter and this.
    __device__ void count_owned() const
    {
        for (uint32_t i = threadIdx.x; i < n_clusters; i += blockDim.x)
            if (weights[i] != 0u) atomicAdd(&owned[weights[i] & 0xFFFFu], 1u);
    }
};

/// For any kernel with the columns and constants of the constructor. `rows`: tabulated.
template <typename Parameters>
__device__ constructed_slice constructed_slice_of(const Parameters& p, const tpc_row* rows, uint32_t part)
{
    return {tracklet_input_of(p, rows, part), p.tpc_start_hits.cluster + p.tpc_start_hits.first(part),
            p.tpc_slices.start_hits[part],    p.tpc_clusters.weights + p.tpc_clusters.first(part),
            clusters_of_rows(rows),           p.tpc_start_hits.owned + p.tpc_start_hits.first(part)};
}

/// One thread writes the number of tracklets, and the flag if a window was crowded.
template <typename Parameters>
__device__ void note_tracklets(const Parameters& p, uint32_t part, uint32_t n_tracklets, bool crowded)
{
    p.tpc_slices.tracklets[part] = n_tracklets;
    if (crowded) set_bits_between_blocks(&p.events.flags[p.event_of(part)], uint32_t{crowded_clusters});
}

}  // namespace hlt
