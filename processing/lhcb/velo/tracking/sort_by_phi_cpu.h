// Sort by phi on the CPU: the counting sort of the common kernel with one pass that finds bins and ranks of the hits in
// them, and an insertion in place of the comparison of all hits of a bin.
//
// Hits without a module pair have a bin behind all others.
#pragma once

#include "lhcb/velo/tracking/sort_by_phi.cuh"

namespace hlt {

/// Puts keys in ascending order that are so but inside bins; hits of equal keys by x, then y.
inline void insert_in_order(uint64_t* __restrict__ key, uint16_t* __restrict__ index, uint32_t n,
                            const float* __restrict__ x, const float* __restrict__ y)
{
    const auto is_before = [&](uint64_t one, uint32_t hit, uint64_t other, uint32_t other_hit) {
        if (one != other) return one < other;
        return x[hit] != x[other_hit] ? x[hit] < x[other_hit] : y[hit] < y[other_hit];
    };
    for (uint32_t i = 1; i < n; ++i) {
        if (key[i - 1u] < key[i]) continue;
        const uint64_t mine = key[i];
        const uint16_t hit = index[i];
        uint32_t at = i;
        for (; at > 0u && is_before(mine, hit, key[at - 1u], index[at - 1u]); --at) {
            key[at] = key[at - 1u];
            index[at] = index[at - 1u];
        }
        key[at] = mine;
        index[at] = hit;
    }
}

}  // namespace hlt

HLT_CPU_FORM(velo_sort_by_phi)
{
    if (!p.takes(event)) return;
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
    uint32_t bin_and_rank[hlt::max_velo_clusters_of_event];
    uint16_t* __restrict__ bin_offset = p.velo_hits.phi_bin_offset + event * hlt::phi_bin_stride;
    uint32_t* const pair_offset = p.velo_hits.module_pair_offset + event * (hlt::n_velo_module_pairs + 1u);

    for (uint32_t i = 0; i < n; ++i)
        bin_and_rank[i] = hlt::min_of(hlt::phi_bin_of(hlt::sort_place(module_pair[i], phi[i])), hlt::n_phi_bins);
    uint16_t counts[hlt::n_phi_bins + 1u] = {};
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t bin = bin_and_rank[i];
        bin_and_rank[i] = bin | static_cast<uint32_t>(counts[bin]++) << 16;
    }
    uint32_t largest = 0, pairs = 0;
    for (uint32_t bin = 0; bin < hlt::n_phi_bins; ++bin) {
        const uint32_t hits = counts[bin];
        largest = hlt::max_of(largest, hits);
        pairs += hits * hits;
    }
    const uint32_t n_in_bins = n - counts[hlt::n_phi_bins];
    const bool sortable =
        largest <= hlt::max_hits_per_bin && pairs <= hlt::max_pairs_per_hit * hlt::max_of(n_in_bins, hlt::n_phi_bins);
    const uint32_t n_hits = sortable ? n_in_bins : 0u;
    p.velo_clusters.count[event] = n_hits;
    if (!sortable) {
        p.events.flags[event] |= hlt::overflow;
        std::memset(bin_offset, 0, (hlt::n_phi_bins + 1u) * sizeof *bin_offset);
        std::memset(pair_offset, 0, (hlt::n_velo_module_pairs + 1u) * sizeof *pair_offset);
        return;
    }
    uint32_t offset = 0;
    for (uint32_t bin = 0; bin <= hlt::n_phi_bins; ++bin) {
        bin_offset[bin] = static_cast<uint16_t>(offset);
        offset += counts[bin];
    }
    for (uint32_t pair = 0; pair <= hlt::n_velo_module_pairs; ++pair)
        pair_offset[pair] = bin_offset[pair * hlt::phi_bins_per_pair];

    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t at = bin_offset[bin_and_rank[i] & 0xffffu] + (bin_and_rank[i] >> 16);
        key[at] = static_cast<uint64_t>(hlt::sort_place(module_pair[i], phi[i])) << 32 | id[i];
        index[at] = static_cast<uint16_t>(i);
    }
    hlt::insert_in_order(key, index, n_hits, x, y);
    float* __restrict__ hit_x = p.velo_hits.x + first;
    float* __restrict__ hit_y = p.velo_hits.y + first;
    float* __restrict__ hit_z = p.velo_hits.z + first;
    int16_t* __restrict__ hit_phi = p.velo_hits.phi + first;
    uint32_t* __restrict__ hit_id = p.velo_hits.id + first;
    for (uint32_t i = 0; i < n_hits; ++i) {
        const uint32_t from = index[i];
        hit_x[i] = x[from];
        hit_y[i] = y[from];
        hit_z[i] = z[from];
    }
    for (uint32_t i = 0; i < n_hits; ++i) {
        hit_phi[i] = hlt::phi_of(static_cast<uint32_t>(key[i] >> 32));
        hit_id[i] = static_cast<uint32_t>(key[i]);
    }
}
