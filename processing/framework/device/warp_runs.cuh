// Shares runs of work of unequal lengths, one per lane, evenly among all lanes of their warp.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

/// The runs of all lanes of a warp; in shared memory, one object per warp.
template <typename Item>
struct warp_runs {
    Item items[warp_size];       // items of the non-empty runs
    uint32_t firsts[warp_size];  // number of pieces before each of these runs
    uint32_t begins[warp_size];  // bit k of word w: a run begins at place k of window w
};

/// Each lane has an item with `n` pieces of work: `work(item, i)` is called for every i < n. Adjacent lanes process
/// adjacent pieces. A block of one thread processes its own pieces. All lanes of the warp must call this.
template <typename Item, typename Work>
__device__ void share_runs(warp_runs<Item>& runs, uint32_t n, const Item& item, Work work)
{
    if (blockDim.x == 1) {
        for (uint32_t i = 0; i < n; ++i) work(item, i);
        return;
    }
    const uint32_t with_work = __ballot_sync(warp_lanes(), n > 0u);
    if (with_work == 0u) return;
    const uint32_t lane = threadIdx.x % warp_size;
    const uint32_t lanes = n_warp_lanes();  // number of places of a window
    const uint32_t last = warp_inclusive_sum(n);
    const uint32_t first = last - n;
    const uint32_t total = of_last_lane(last);
    if (n > 0u) {
        const uint32_t run = static_cast<uint32_t>(__popc(with_work & lanes_before()));
        runs.items[run] = item;
        runs.firsts[run] = first;
    }
    uint32_t n_begun = 0;
    for (uint32_t from = 0; from < total; from += lanes * lanes) {
        runs.begins[lane] = 0;
        __syncwarp(warp_lanes());
        if (n > 0u && first - from < lanes * lanes)
            atomicOr(&runs.begins[(first - from) / lanes], 1u << (first - from) % lanes);
        __syncwarp(warp_lanes());
        const uint32_t end = min_of(total, from + lanes * lanes);
        uint32_t window = 0;
        for (uint32_t place = from + lane; place - lane < end; place += lanes) {
            const uint32_t begins = runs.begins[window++];
            if (place < end) {
                const uint32_t run = n_begun + static_cast<uint32_t>(__popc(begins & (lanes_before() << 1 | 1u))) - 1u;
                work(runs.items[run], place - runs.firsts[run]);
            }
            n_begun += static_cast<uint32_t>(__popc(begins));
        }
        __syncwarp(warp_lanes());  // all lanes read before others write
    }
}

}  // namespace hlt
