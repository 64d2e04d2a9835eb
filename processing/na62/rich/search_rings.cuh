// All rings of an event, without a seed (triplets.cuh).
//
// Each pass makes a ring of each triplet of free hits and takes the best one with its hits; passes repeat until no ring
// is good. In the end each ring is fitted to all hits near it, so that rings share hits where they cross. In: positions
// and number of the hits. Out: the rings in the order in which they were found. One block per event; a thread takes a
// triplet, so eight lanes of a warp work. Thread 0 chooses. The CPU form has a triplet in each lane of a vector.
// Bounds: rich_max_hits; rich_max_rings, rich_max_passes.
#pragma once

#include "na62/rich/generated/rich_flags.h"
#include "na62/rich/generated/rich_search_rings.h"
#include "na62/rich/ring_choice.cuh"

namespace hlt {

/// Take the best ring of the triplets. Its hits are no longer free.
template <typename Parameters>
__device__ bool take_best_ring(const Parameters& p, ring_search& search)
{
    float hits[8], squares[8];
    uint32_t good = 0;
    for (uint32_t t = 0; t < p.triplets; ++t) {
        const fitted_ring<float>& ring = search.of_triplets[t];
        hits[t] = ring.hits;
        squares[t] = ring.squares;
        good |= is_good_ring(p, ring) ? 1u << t : 0u;
    }
    const circle<float> line = search.of_triplets[good != 0u ? best_ring(good, hits, squares) : 0u].line;
    return take_ring(p, search, good != 0u, line, [&](const circle<float>& taken) {
        const ring_window<float> near_line(taken, p.window);
        uint32_t n = 0;
        for (uint32_t k = 0; k < search.n_free; ++k) {
            const float x = search.x[k], y = search.y[k];
            search.x[n] = x;
            search.y[n] = y;
            n += near_line.has(x, y) ? 0u : 1u;
        }
        search.n_free = n;
    });
}

}  // namespace hlt

HLT_KERNEL(rich_search_rings)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ hlt::ring_search search;
    __shared__ hlt::fitted_ring<float> last[hlt::rich_max_rings];
    __shared__ uint32_t goes_on;
    const uint32_t n = p.rich_hits.count[event];
    const float* const hit_x = p.rich_hits.x + p.rich_hits.first(event);
    const float* const hit_y = p.rich_hits.y + p.rich_hits.first(event);
    if (n < p.min_hits) return;
    const hlt::triplet_cuts cuts = hlt::cuts_of(p);
    for (uint32_t k = threadIdx.x; k < n; k += blockDim.x) {
        search.x[k] = hit_x[k];
        search.y[k] = hit_y[k];
    }
    if (threadIdx.x == 0) {
        search.n_free = n;
        search.n_rings = search.skipped = search.left_out = 0;
    }
    __syncthreads();
    for (uint32_t pass = 0; pass < hlt::rich_max_passes; ++pass) {
        for (uint32_t t = threadIdx.x; t < p.triplets; t += blockDim.x)
            search.of_triplets[t] = hlt::ring_of_triplet<float>(search.x, search.y, search.n_free, hlt::axis_x_of(t),
                                                                hlt::axis_y_of(t), cuts, search.skipped);
        __syncthreads();
        if (threadIdx.x == 0) goes_on = hlt::take_best_ring(p, search) ? 1u : 0u;
        __syncthreads();
        if (goes_on == 0) break;
    }
    if (threadIdx.x == 0 && goes_on != 0) search.left_out = 1;
    for (uint32_t r = threadIdx.x; r < search.n_rings; r += blockDim.x)
        last[r] = hlt::refit_ring<float>(hit_x, hit_y, n, search.rings[r], p.window, p.method, p.min_spread);
    __syncthreads();
    if (threadIdx.x == 0) hlt::write_rings(p, event, search, last);
}
