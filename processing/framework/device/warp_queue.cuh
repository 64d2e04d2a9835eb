// Shares work that few threads find among all lanes of their warp.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t warp_queue_items = 2u * warp_size;

/// Items wait until there is one for each lane of the warp; then the lanes process them together. A block of one thread
/// processes each item immediately. All lanes of the warp must call both functions.
template <typename Item>
struct warp_queue {
    Item* items;  // in shared memory: warp_queue_items of this warp
    uint32_t n;

    /// Add an item if `offers`; calls `work(item)` when there are enough items.
    template <typename Work>
    __device__ void offer(bool offers, const Item& item, Work work)
    {
        if (blockDim.x == 1) {
            if (offers) work(item);
            return;
        }
        const uint32_t lane = threadIdx.x % warp_size;
        const uint32_t lanes = n_warp_lanes();
        const uint32_t offered = __ballot_sync(warp_lanes(), offers);
        if (offers) items[n + static_cast<uint32_t>(__popc(offered & lanes_before()))] = item;
        n += static_cast<uint32_t>(__popc(offered));
        __syncwarp(warp_lanes());
        if (n < lanes) return;
        n -= lanes;
        const Item mine = items[n + lane];
        __syncwarp(warp_lanes());  // all lanes read before new items are written
        work(mine);
    }

    /// Process the remaining items.
    template <typename Work>
    __device__ void finish(Work work)
    {
        if (threadIdx.x % warp_size < n) work(items[threadIdx.x % warp_size]);
        n = 0;
    }
};

}  // namespace hlt
