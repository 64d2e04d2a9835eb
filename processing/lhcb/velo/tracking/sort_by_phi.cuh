// Sort of the hits by phi inside each module pair.
//
// The order is total (phi, LHCbID, x, y), so the result depends neither on the order of the words in a bank nor on the
// threads. A counting sort puts the hits into bins of module pair and phi, with about one hit in each. Then every hit
// counts the hits of its bin that precede it. Hits of masked ASICs are dropped first.
// In:  velo_unsorted.{x, y, z, phi, id, module_pair}, velo_unsorted.count, velo_geometry.
// Out: velo_hits.{x, y, z, phi, id}, velo_clusters.count [event], velo_hits.module_pair_offset [event][27],
//      velo_hits.phi_bin_offset [event][26 * 128 + 8]; scratch.sort_key, scratch.sort_index.
// One block per event; threads stride over hits, then over bins.
// Bounds: velo_unsorted.count <= velo_clusters.bound of the event. Hits of one bin are compared with one another, here
// and in the windows of the search. So an event is flagged and gives no hits if a bin has more than max_hits_per_bin,
// or if all bins together have more than max_pairs_per_hit ordered pairs for each hit (with few hits, for each bin).
// No physics event exceeds these limits.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/velo/hit.cuh"
#include "lhcb/velo/tracking/generated/velo_sort_by_phi.h"
#include "lhcb/velo/tracking/phi_bins.cuh"

namespace hlt {
constexpr uint32_t max_hits_per_bin = 256;  // events of 21,000 hits have up to 116
constexpr uint32_t max_pairs_per_hit = 32;  // events of 21,000 hits have up to 8

/// Ascends by module pair, then by phi, which is counted from -pi in the low 16 bits.
__device__ uint32_t sort_place(uint32_t module_pair, int16_t phi)
{
    return module_pair << 16 | (static_cast<uint16_t>(phi) ^ 0x8000u);
}
__device__ uint32_t phi_bin_of(uint32_t place) { return place >> (16u - phi_bin_bits); }
__device__ int16_t phi_of(uint32_t place) { return static_cast<int16_t>(static_cast<uint16_t>(place ^ 0x8000u)); }

/// A number for each bin, two in a word, the even bin in the low half. 16 bits suffice for the hits of an event.
struct phi_bin_numbers {
    static constexpr uint32_t n_words = n_phi_bins / 2u;
    alignas(16) uint32_t words[n_words];

    /// Add one hit to the count of a bin; returns the count before.
    __device__ uint32_t take(uint32_t bin)
    {
        const uint32_t shift = 16u * (bin & 1u);
        return atomicAdd(&words[bin / 2u], 1u << shift) >> shift & 0xffffu;
    }
    __device__ uint32_t operator[](uint32_t bin) const { return words[bin / 2u] >> 16u * (bin & 1u) & 0xffffu; }
};
static_assert(n_phi_bins % 8u == 0u && max_velo_clusters_of_event <= 0xffffu);

/// Mark the hits of masked ASICs as places without a hit.
__device__ void drop_masked_velo_hits(const velo_geometry& geometry, const uint32_t* __restrict__ id,
                                      uint8_t* __restrict__ module_pair, uint32_t n)
{
    if (geometry.n_masked_asics == 0u) return;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const uint32_t asic = id[i] >> 16 & 0x3ffu;  // four times the sensor plus the column / 256
        if ((geometry.masked_asics[asic / 32u] >> asic % 32u & 1u) != 0u) module_pair[i] = no_module_pair;
    }
}

/// Number of hits of a bin, [begin, end), that have the key of hit `i` and precede it. Only a damaged bank has two
/// clusters of one pixel.
__device__ uint32_t equal_hits_before(uint32_t i, uint32_t begin, uint32_t end, const uint64_t* __restrict__ key,
                                      const uint16_t* __restrict__ index, const float* __restrict__ x,
                                      const float* __restrict__ y)
{
    const uint32_t from = index[i];
    uint32_t n = 0;
    for (uint32_t j = begin; j < end; ++j) {
        if (key[j] != key[i] || j == i) continue;
        const uint32_t other = index[j];
        const bool before = x[other] != x[from] ? x[other] < x[from] : y[other] != y[from] ? y[other] < y[from] : j < i;
        if (before) ++n;
    }
    return n;
}
}  // namespace hlt

HLT_KERNEL(velo_sort_by_phi)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ hlt::phi_bin_numbers cursor;  // counts of the bins, then their beginnings, then their ends
    __shared__ uint32_t largest_bin;
    __shared__ uint32_t pairs;  // of hits in one bin; at most 65535^2

    const uint32_t first = p.velo_hits.first(event);
    const uint32_t n = p.velo_unsorted.count[event];
    const float* __restrict__ x = p.velo_unsorted.x + first;
    const float* __restrict__ y = p.velo_unsorted.y + first;
    const float* __restrict__ z = p.velo_unsorted.z + first;
    const int16_t* __restrict__ phi = p.velo_unsorted.phi + first;
    const uint32_t* __restrict__ id = p.velo_unsorted.id + first;
    uint8_t* __restrict__ module_pair = p.velo_unsorted.module_pair + first;
    uint64_t* __restrict__ key = p.scratch.sort_key + first;
    uint16_t* __restrict__ index = p.scratch.sort_index + first;
    float* __restrict__ hit_x = p.velo_hits.x + first;
    float* __restrict__ hit_y = p.velo_hits.y + first;
    float* __restrict__ hit_z = p.velo_hits.z + first;
    int16_t* __restrict__ hit_phi = p.velo_hits.phi + first;
    uint32_t* __restrict__ hit_id = p.velo_hits.id + first;
    uint16_t* __restrict__ bin_offset = p.velo_hits.phi_bin_offset + event * hlt::phi_bin_stride;
    uint32_t* pair_offset = p.velo_hits.module_pair_offset + event * (hlt::n_velo_module_pairs + 1u);

    hlt::zero_words(cursor.words, cursor.n_words);
    if (threadIdx.x == 0) largest_bin = pairs = 0;
    hlt::drop_masked_velo_hits(*p.velo_geometry, id, module_pair, n);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        if (module_pair[i] != hlt::no_module_pair)
            cursor.take(hlt::phi_bin_of(hlt::sort_place(module_pair[i], phi[i])));
    __syncthreads();

    // Each thread takes consecutive bins, so that one prefix sum over the threads is enough.
    const uint32_t words_of_thread = (cursor.n_words + blockDim.x - 1u) / blockDim.x;
    const uint32_t first_word = hlt::min_of(threadIdx.x * words_of_thread, cursor.n_words);
    const uint32_t last_word = hlt::min_of(first_word + words_of_thread, cursor.n_words);
    uint32_t n_hits = 0, largest = 0, my_hits = 0, my_pairs = 0;
    for (uint32_t i = first_word; i < last_word; ++i) {
        const uint32_t even = cursor.words[i] & 0xffffu, odd = cursor.words[i] >> 16;
        largest = hlt::max_of(largest, hlt::max_of(even, odd));
        my_hits += even + odd;
        my_pairs += even * even + odd * odd;
    }
    atomicMax(&largest_bin, largest);
    atomicAdd(&pairs, my_pairs);
    uint32_t offset = hlt::block_exclusive_sum(my_hits, scratch, n_hits);
    for (uint32_t i = first_word; i < last_word; ++i) {
        const uint32_t even = cursor.words[i] & 0xffffu, odd = cursor.words[i] >> 16;
        cursor.words[i] = offset | (offset + even) << 16;
        offset += even + odd;
    }
    __syncthreads();
    const bool sortable =
        largest_bin <= hlt::max_hits_per_bin && pairs <= hlt::max_pairs_per_hit * hlt::max_of(n_hits, hlt::n_phi_bins);
    if (!sortable) n_hits = 0;
    if (sortable)
        hlt::copy_words(bin_offset, cursor.words, cursor.n_words);
    else
        hlt::zero_words(bin_offset, cursor.n_words);
    if (threadIdx.x == 0) {
        bin_offset[hlt::n_phi_bins] = static_cast<uint16_t>(n_hits);
        p.velo_clusters.count[event] = n_hits;
        if (!sortable) p.events.flags[event] |= hlt::overflow;
    }
    for (uint32_t pair = threadIdx.x; pair <= hlt::n_velo_module_pairs; pair += blockDim.x)
        pair_offset[pair] =
            pair < hlt::n_velo_module_pairs && sortable ? cursor[pair * hlt::phi_bins_per_pair] : n_hits;
    __syncthreads();
    if (!sortable) return;

    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        if (module_pair[i] == hlt::no_module_pair) continue;
        const uint32_t place = hlt::sort_place(module_pair[i], phi[i]);
        const uint32_t at = cursor.take(hlt::phi_bin_of(place));
        key[at] = static_cast<uint64_t>(place) << 32 | id[i];
        index[at] = static_cast<uint16_t>(i);
    }
    __syncthreads();

    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) {
        const uint64_t mine = key[i];
        const uint32_t place = static_cast<uint32_t>(mine >> 32);
        const uint32_t bin = hlt::phi_bin_of(place);
        const uint32_t begin = bin_offset[bin], end = bin_offset[bin + 1u];
        uint32_t rank = begin;
        if (end - begin > 1u) {
            uint32_t equal = 0;
#pragma unroll 1  // bins are small
            for (uint32_t j = begin; j < end; ++j) {
                rank += key[j] < mine ? 1u : 0u;
                equal += key[j] == mine ? 1u : 0u;
            }
            if (equal > 1u) rank += hlt::equal_hits_before(i, begin, end, key, index, x, y);
        }
        const uint32_t from = index[i];
        hit_x[rank] = x[from];
        hit_y[rank] = y[from];
        hit_z[rank] = z[from];
        hit_phi[rank] = hlt::phi_of(place);
        hit_id[rank] = static_cast<uint32_t>(mine);
    }
}
