// Sort of the hits by phi inside each module pair.
//
// The order is total (phi, LHCbID, x, y), so that the result depends neither on the order of the words in a bank nor on
// the threads. A counting sort puts the hits into bins of module pair and phi (about one hit each), then every hit
// counts those of its bin that stand before it.
// In:  velo_unsorted.{x, y, z, phi, id, module_pair}, velo_unsorted.count.
// Out: velo_hits.{x, y, z, phi, id}, velo_clusters.count [event], velo_hits.module_pair_offset [event][27],
//      velo_hits.phi_bin_offset [event][26 * 128 + 1]; scratch.sort_key, scratch.sort_index.
// One block per event; threads stride over hits, then over bins.
// Bounds: velo_unsorted.count <= velo_clusters.bound of the event. Hits of one bin are compared with one another, here
// and through the windows of the search. So the event is flagged and gives no hits where a bin has more than
// max_hits_per_bin, or where all bins together have more than max_pairs_per_hit ordered pairs for each hit (or, with
// few hits, for each bin): such an event is no physics.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/velo/generated/velo_sort_by_phi.h"
#include "lhcb/velo/hit.cuh"
#include "lhcb/velo/phi_bins.cuh"

namespace hlt {
constexpr uint32_t max_hits_per_bin = 256;  // events of 21,000 hits have up to 116
constexpr uint32_t max_pairs_per_hit = 32;  // events of 21,000 hits have up to 8
}  // namespace hlt

HLT_KERNEL(velo_sort_by_phi)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t cursor[hlt::n_phi_bins];  // counts of the bins, then their ends
    __shared__ uint32_t largest_bin;
    __shared__ uint32_t pairs;  // of hits in one bin; at most 65535^2

    const uint32_t first = p.velo_hits.first(event);
    const uint32_t n = p.velo_unsorted.count[event];
    const float* __restrict__ x = p.velo_unsorted.x + first;
    const float* __restrict__ y = p.velo_unsorted.y + first;
    const float* __restrict__ z = p.velo_unsorted.z + first;
    const int16_t* __restrict__ phi = p.velo_unsorted.phi + first;
    const uint32_t* __restrict__ id = p.velo_unsorted.id + first;
    const uint8_t* __restrict__ module_pair = p.velo_unsorted.module_pair + first;
    uint64_t* __restrict__ key = p.scratch.sort_key + first;
    uint16_t* __restrict__ index = p.scratch.sort_index + first;
    float* __restrict__ hit_x = p.velo_hits.x + first;
    float* __restrict__ hit_y = p.velo_hits.y + first;
    float* __restrict__ hit_z = p.velo_hits.z + first;
    int16_t* __restrict__ hit_phi = p.velo_hits.phi + first;
    uint32_t* __restrict__ hit_id = p.velo_hits.id + first;
    uint16_t* __restrict__ bin_offset = p.velo_hits.phi_bin_offset + event * hlt::phi_bin_stride;
    uint32_t* pair_offset = p.velo_hits.module_pair_offset + event * (hlt::n_velo_module_pairs + 1u);

    for (uint32_t bin = threadIdx.x; bin < hlt::n_phi_bins; bin += blockDim.x) cursor[bin] = 0;
    if (threadIdx.x == 0) largest_bin = pairs = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        if (module_pair[i] != hlt::no_module_pair) atomicAdd(&cursor[hlt::phi_bin(module_pair[i], phi[i] + 32768)], 1u);
    __syncthreads();

    // Each thread takes bins that stand together, so that one prefix sum over the threads is enough.
    const uint32_t bins_of_thread = (hlt::n_phi_bins + blockDim.x - 1u) / blockDim.x;
    const uint32_t first_bin = hlt::min_of(threadIdx.x * bins_of_thread, hlt::n_phi_bins);
    const uint32_t last_bin = hlt::min_of(first_bin + bins_of_thread, hlt::n_phi_bins);
    uint32_t n_hits = 0, largest = 0, my_hits = 0, my_pairs = 0;
    for (uint32_t bin = first_bin; bin < last_bin; ++bin) {
        const uint32_t count = cursor[bin];
        largest = hlt::max_of(largest, count);
        my_hits += count;
        my_pairs += count * count;
    }
    atomicMax(&largest_bin, largest);
    atomicAdd(&pairs, my_pairs);
    uint32_t offset = hlt::block_exclusive_sum(my_hits, scratch, n_hits);
    for (uint32_t bin = first_bin; bin < last_bin; ++bin) {
        const uint32_t count = cursor[bin];
        cursor[bin] = offset;
        offset += count;
    }
    __syncthreads();
    const bool sortable =
        largest_bin <= hlt::max_hits_per_bin && pairs <= hlt::max_pairs_per_hit * hlt::max_of(n_hits, hlt::n_phi_bins);
    if (!sortable) n_hits = 0;
    for (uint32_t bin = threadIdx.x; bin < hlt::n_phi_bins; bin += blockDim.x)
        bin_offset[bin] = static_cast<uint16_t>(sortable ? cursor[bin] : 0u);
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
        const uint32_t from_zero = static_cast<uint32_t>(phi[i] + 32768);
        const uint32_t at = atomicAdd(&cursor[hlt::phi_bin(module_pair[i], phi[i] + 32768)], 1u);
        key[at] = static_cast<uint64_t>(module_pair[i] << 16 | from_zero) << 32 | id[i];
        index[at] = static_cast<uint16_t>(i);
    }
    __syncthreads();

    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) {
        const uint64_t mine = key[i];
        const uint32_t bin = static_cast<uint32_t>(mine >> (48u - hlt::phi_bin_bits));
        const uint32_t from = index[i];
        const uint32_t begin = bin_offset[bin], end = bin_offset[bin + 1u];
        uint32_t rank = begin;
        if (end - begin > 1u) {
            for (uint32_t j = begin; j < end; ++j) {
                if (key[j] < mine) ++rank;
                if (key[j] == mine && j != i) {  // the same pixel: two clusters only if the bank is damaged
                    const uint32_t other = index[j];
                    const bool before = x[other] != x[from]   ? x[other] < x[from]
                                        : y[other] != y[from] ? y[other] < y[from]
                                                              : j < i;
                    if (before) ++rank;
                }
            }
        }
        hit_x[rank] = x[from];
        hit_y[rank] = y[from];
        hit_z[rank] = z[from];
        hit_phi[rank] = phi[from];
        hit_id[rank] = id[from];
    }
}
