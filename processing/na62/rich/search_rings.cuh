// All rings of an event, without a seed (triplets.cuh).
//
// Each pass makes a ring of each triplet of free hits and takes the best one with its hits; passes repeat until no ring
// is good. In the end each ring is fitted to all hits near it, so that rings share hits where they cross. In: positions
// and number of the hits. Out: the rings in the order in which they were found. One block per event; a thread takes a
// triplet, so eight lanes of a warp work. Thread 0 chooses. The CPU form has triplets in the lanes of a vector.
// Bounds: rich_max_hits; rich_max_rings, rich_max_passes.
#pragma once

#include "na62/rich/generated/rich_flags.h"
#include "na62/rich/generated/rich_search_rings.h"
#include "na62/rich/ring_choice.cuh"

namespace hlt {

/// The best of the good rings of the triplets: that with most hits, then with the least sum of squares, then the first
/// one. 8: none is good.
template <typename Parameters>
__device__ uint32_t best_ring(const Parameters& p, const ring_search& search)
{
    uint32_t best = 8;
    float hits = 0.f, squares = 0.f;
    for (uint32_t t = 0; t < p.triplets; ++t) {
        const fitted_ring<float>& ring = search.of_triplets[t];
        if (!is_good_ring(p, ring)) continue;
        if (best != 8u && (ring.hits < hits || (ring.hits == hits && ring.squares >= squares))) continue;
        best = t;
        hits = ring.hits;
        squares = ring.squares;
    }
    return best;
}

/// Take the best ring of the triplets. Its hits are no longer free.
template <typename Parameters>
__device__ bool take_best_ring(const Parameters& p, ring_search& search)
{
    const uint32_t best = best_ring(p, search);
    const circle<float> line = search.of_triplets[best & 7u].line;
    return take_ring(p, search, best != 8u, line, [&](const circle<float>& taken) {
        const ring_window<float> near_line(taken, p.window);
        search_hits& hits = search.hits;
        uint32_t n = 0;
        for (uint32_t k = 0; k < hits.n; ++k) {
            const float x = hits.x[k], y = hits.y[k];
            hits.x[n] = x;
            hits.y[n] = y;
            n += near_line.has(x, y) ? 0u : 1u;
        }
        hits.n = n;
    });
}

/// The frame of the hits of an event.
__device__ hit_frame frame_of_hits(const float* x, const float* y, uint32_t n)
{
    float least_x = x[0], most_x = x[0], least_y = y[0], most_y = y[0];
    for (uint32_t k = 1; k < n; ++k) {
        least_x = min_of(least_x, x[k]);
        most_x = max_of(most_x, x[k]);
        least_y = min_of(least_y, y[k]);
        most_y = max_of(most_y, y[k]);
    }
    return frame_of_box(least_x, most_x, least_y, most_y);
}

/// Make the products of the hits of a pass.
__device__ void make_all_products(ring_search& search)
{
    for (uint32_t k = threadIdx.x; k < search.hits.n; k += blockDim.x)
        make_products(search.frame, search.hits.x[k], search.hits.y[k],
                      [&](hit_product product, int32_t value) { search.hits.of[product][k] = value; });
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
    const hlt::ring_cuts cuts = hlt::cuts_of(p);
    for (uint32_t k = threadIdx.x; k < n; k += blockDim.x) {
        search.hits.x[k] = hit_x[k];
        search.hits.y[k] = hit_y[k];
    }
    if (threadIdx.x == 0) {
        search.frame = hlt::frame_of_hits(hit_x, hit_y, n);
        search.hits.n = n;
        search.n_rings = search.skipped = search.left_out = 0;
    }
    __syncthreads();
    for (uint32_t pass = 0; pass < hlt::rich_max_passes; ++pass) {
        hlt::make_all_products(search);
        __syncthreads();
        for (uint32_t t = threadIdx.x; t < p.triplets; t += blockDim.x)
            search.of_triplets[t] = hlt::ring_of_triplet<float>(search.hits, search.frame, hlt::axis_x_of(t),
                                                                hlt::axis_y_of(t), cuts, search.skipped);
        __syncthreads();
        if (threadIdx.x == 0) goes_on = hlt::take_best_ring(p, search) ? 1u : 0u;
        __syncthreads();
        if (goes_on == 0) break;
    }
    if (threadIdx.x == 0) {
        if (goes_on != 0) search.left_out = 1;
        search.hits.n = n;
    }
    for (uint32_t k = threadIdx.x; k < n; k += blockDim.x) {
        search.hits.x[k] = hit_x[k];
        search.hits.y[k] = hit_y[k];
    }
    __syncthreads();
    hlt::make_all_products(search);
    __syncthreads();
    for (uint32_t r = threadIdx.x; r < search.n_rings; r += blockDim.x)
        last[r] = hlt::refit_ring<float>(search.hits, search.frame, search.rings[r], cuts);
    __syncthreads();
    if (threadIdx.x == 0) hlt::write_rings(p, event, search, last);
}
