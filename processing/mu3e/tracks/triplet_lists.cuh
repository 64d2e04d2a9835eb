// Triplets of an event in order, with all threads of a block busy: parts of select_triplets.cuh.
//
// The hits near a hit differ in number, so threads do not loop over them. Numbers of hits are summed; a thread takes an
// item of the sum and finds by bisection which hit it belongs to.
#pragma once

#include "mu3e/tracks/hit_search.cuh"

namespace hlt {

/// Hits of layer 0 whose pairs are tested together, and pairs whose triplets are.
constexpr uint32_t listed_hits = 256, listed_pairs = max_block_size + 64u;

/// Memory that the threads of a block share.
struct triplet_lists {
    uint32_t scratch[max_block_size / warp_size];
    uint32_t first_pair[listed_hits + 1u];                         // to be tested, of each hit of layer 0
    uint16_t one[listed_hits];                                     // first hit of layer 1 in time
    uint16_t i[listed_pairs], j[listed_pairs], two[listed_pairs];  // pairs, and the first hit of layer 2 in time
    uint32_t first_triplet[listed_pairs + 1u];                     // to be tested, of each pair
    int32_t earliest[listed_pairs];
    float slope[listed_pairs];
};

/// Write the exclusive prefix sums of count_of(0) to count_of(n - 1), and the sum behind them; returns the sum. All
/// threads of the block must call it.
template <typename Count>
__device__ __forceinline__ uint32_t sum_counts(uint32_t* begins, uint32_t n, uint32_t* scratch, const Count& count_of)
{
    uint32_t sum = 0;
    for (uint32_t begin = 0; begin < n; begin += blockDim.x) {
        const uint32_t m = begin + threadIdx.x;
        uint32_t n_here;
        const uint32_t before = block_exclusive_sum(m < n ? count_of(m) : 0u, scratch, n_here);
        if (m < n) begins[m] = sum + before;
        sum += n_here;
    }
    if (threadIdx.x == 0) begins[n] = sum;
    block_barrier();
    return sum;
}

/// The last of n ascending numbers that is not above q; the first one is 0.
__device__ __forceinline__ uint32_t last_not_above(const uint32_t* begins, uint32_t n, uint32_t q)
{
    uint32_t low = 0, high = n;
    while (high - low > 1u) {
        const uint32_t middle = (low + high) / 2u;
        if (begins[middle] <= q)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/// Times of the first hits of triplets.
struct first_times {
    uint32_t begin, end;
};

/// Append the triplets of n_pairs listed pairs to the n_found that are there. Returns the number of all; those behind
/// mu3e_max_triplets are not written.
__device__ __forceinline__ uint32_t append_triplets(triplet_lists& lists, const event_hits& hits,
                                                    const geometric_cuts& cuts, const first_times& times,
                                                    uint32_t n_pairs, uint64_t* triplets, uint32_t n_found)
{
    const int32_t window = static_cast<int32_t>(cuts.hit_window);
    block_barrier();
    const uint32_t n_tested = sum_counts(lists.first_triplet, n_pairs, lists.scratch, [&](uint32_t m) {
        const int32_t t0 = static_cast<int32_t>(time_of_hit(hits.word[lists.i[m]])),
                      t1 = static_cast<int32_t>(time_of_hit(hits.word[lists.j[m]]));
        const int32_t earliest = t0 < t1 ? t0 : t1, latest = t0 < t1 ? t1 : t0;
        const uint32_t first = first_hit_from(hits, 2u, latest - window + 1);
        lists.two[m] = static_cast<uint16_t>(first);
        lists.earliest[m] = earliest;
        return first_hit_from(hits, 2u, earliest + window) - first;
    });
    for (uint32_t begin = 0; begin < n_tested; begin += blockDim.x) {
        const uint32_t q = begin + threadIdx.x;
        bool passes = false;
        uint64_t triplet = 0;
        if (q < n_tested) {
            const uint32_t m = last_not_above(lists.first_triplet, n_pairs, q);
            const uint32_t j = lists.j[m], k = lists.two[m] + q - lists.first_triplet[m];
            triplet = triplet_word(lists.i[m], j, k);
            const float dx12 = hits.x[k] - hits.x[j], dy12 = hits.y[k] - hits.y[j], dz12 = hits.z[k] - hits.z[j];
            const float square12 = dx12 * dx12 + dy12 * dy12;
            const float residual = dz12 - lists.slope[m] * sqrtf(square12);
            const uint32_t t2 = time_of_hit(hits.word[k]), earliest = static_cast<uint32_t>(lists.earliest[m]);
            const uint32_t first = min_of(earliest, t2);
            passes = square12 <= cuts.square_xy12 && dz12 <= cuts.z12 && -dz12 <= cuts.z12 &&
                     residual <= cuts.z_residual && -residual <= cuts.z_residual && first >= times.begin &&
                     first < times.end;
        }
        uint32_t n_here;
        const uint32_t at = n_found + block_exclusive_count(passes, lists.scratch, n_here);
        n_found += n_here;
        if (passes && at < mu3e_max_triplets) triplets[at] = triplet;
    }
    return n_found;
}

/// Append the triplets whose first hit has one of these times, in ascending order, as append_triplets.
__device__ uint32_t find_triplets_from(triplet_lists& lists, const event_hits& hits, const geometric_cuts& cuts,
                                       const first_times& times, uint64_t* triplets, uint32_t n_found)
{
    const int32_t window = static_cast<int32_t>(cuts.hit_window);
    const uint32_t first = first_hit_from(hits, 0u, static_cast<int32_t>(times.begin)),
                   last = first_hit_from(hits, 0u, static_cast<int32_t>(times.end) + window - 1);
    uint32_t n_pairs = 0;
    for (uint32_t first_here = first; first_here < last; first_here += listed_hits) {
        const uint32_t n_hits = min_of(last - first_here, listed_hits);
        const uint32_t n_tested = sum_counts(lists.first_pair, n_hits, lists.scratch, [&](uint32_t m) {
            const int32_t t0 = static_cast<int32_t>(time_of_hit(hits.word[first_here + m]));
            const uint32_t first_one = first_hit_from(hits, 1u, t0 - window + 1);
            lists.one[m] = static_cast<uint16_t>(first_one);
            return first_hit_from(hits, 1u, t0 + window) - first_one;
        });
        for (uint32_t begin = 0; begin < n_tested; begin += blockDim.x) {
            if (n_pairs + blockDim.x > listed_pairs) {
                n_found = append_triplets(lists, hits, cuts, times, n_pairs, triplets, n_found);
                n_pairs = 0;
            }
            const uint32_t q = begin + threadIdx.x;
            bool passes = false;
            uint32_t i = 0, j = 0;
            float slope = 0.f;
            if (q < n_tested) {
                const uint32_t m = last_not_above(lists.first_pair, n_hits, q);
                i = first_here + m;
                j = lists.one[m] + q - lists.first_pair[m];
                const float dx01 = hits.x[j] - hits.x[i], dy01 = hits.y[j] - hits.y[i], dz01 = hits.z[j] - hits.z[i];
                const float square01 = dx01 * dx01 + dy01 * dy01;
                passes = square01 <= cuts.square_xy01 && dz01 <= cuts.z01 && -dz01 <= cuts.z01;
                slope = dz01 / sqrtf(square01);
            }
            uint32_t n_here;
            const uint32_t at = n_pairs + block_exclusive_count(passes, lists.scratch, n_here);
            n_pairs += n_here;
            if (!passes) continue;
            lists.i[at] = static_cast<uint16_t>(i);
            lists.j[at] = static_cast<uint16_t>(j);
            lists.slope[at] = slope;
        }
    }
    return append_triplets(lists, hits, cuts, times, n_pairs, triplets, n_found);
}

}  // namespace hlt
