// The hits of a sub-slice by group (layer, or recurl stations), time and pixel, with their positions.
//
// In: rows and fragments of the sub-slice and of its neighbours in the time slice; mu3e.sensor. Out: hits as words, x,
// y and z, first hit of each group, the numbers of time slice and sub-slice, flags. The last `reach` ns of the
// sub-slice before and the first ones behind belong to the hits, so that tracks near an edge are complete. One block
// per event. Threads stride over the hits of a bank and append those that are used in any order; a bitonic network
// sorts them. The order is total, so the result does not depend on the threads. A repeated hit is used once. With more
// than mu3e_max_hits, none is used. The CPU form sorts by buckets of time. Bound: mu3e_max_hits.
#pragma once

#include "mu3e/hits/generated/mu3e_sort_hits.h"
#include "mu3e/hits/hit_banks.cuh"

namespace hlt {

constexpr uint64_t no_hit = ~uint64_t{0};

/// The threads of a block sort n words (K. E. Batcher, "Sorting networks and their applications", AFIPS Spring Joint
/// Computer Conference 1968); `words` has room up to the next power of two.
__device__ void sort_words(uint64_t* words, uint32_t n)
{
    uint32_t size = 1;
    while (size < n) size *= 2u;
    for (uint32_t i = n + threadIdx.x; i < size; i += blockDim.x) words[i] = no_hit;
    for (uint32_t width = 2; width <= size; width *= 2u) {
        for (uint32_t step = width / 2u; step != 0u; step /= 2u) {
            __syncthreads();
            for (uint32_t k = threadIdx.x; k < size / 2u; k += blockDim.x) {
                const uint32_t i = k / step * 2u * step + k % step, j = i + step;
                const uint64_t a = words[i], b = words[j];
                const bool ascending = (i & width) == 0u;
                if ((a > b) == ascending) {
                    words[i] = b;
                    words[j] = a;
                }
            }
        }
    }
    __syncthreads();
}

/// The sources of a sub-slice, the number of its time slice, the flags of its place and of its banks as a whole, and
/// the neighbours that it has.
struct sub_slice_banks {
    row_range rows;
    uint32_t slice;
    uint32_t flags;
    bool has_previous, has_next;
};

template <typename Parameters>
__device__ sub_slice_banks find_sub_slice(const Parameters& p, const event_row& place)
{
    const raw_banks& banks = p.raw_banks;
    sub_slice_banks found{rows_of(banks, place.mep, mu3e_subdetector), 0, no_hits_bank, place.index != 0u, false};
    uint32_t n = 0;
    for (uint32_t i = found.rows.first; i < found.rows.first + found.rows.count; ++i) {
        const mfp_row row = banks.mfp_rows[i];
        found.slice = load_u32(banks.bytes + row.data_offset + 8);
        n = row.n_fragments;
        const fragment_view bank = fragment_of(banks, row, place.index);
        if (bank.type != no_bank) found.flags &= ~uint32_t{no_hits_bank};
        if (is_bad_bank(bank, row)) found.flags |= bad_hits_bank;
    }
    if (n == 0u) return found;
    found.has_next = place.index + 1u < n;
    if (place.index < p.margin_before || place.index + p.margin_behind >= n)
        found.flags |= margin;
    else if (!found.has_previous || !found.has_next)
        found.flags |= no_neighbour;
    return found;
}

/// Times of the hits of a sub-slice that are used, and what is added to them.
struct time_range {
    uint32_t begin, end, added;
};

/// neighbour: 0, the sub-slice itself; 1, the one behind it; 2, the one before it. Sums wrap: 2 subtracts the length.
template <typename Parameters>
__device__ __forceinline__ time_range times_of(const Parameters& p, uint32_t neighbour)
{
    const uint32_t reach = reach_of(p);
    if (neighbour == 0u) return {0, p.length, reach};
    if (neighbour == 1u) return {0, p.time_window + reach, reach + p.length};
    return {p.length - reach, p.length, reach - p.length};
}

__device__ __forceinline__ bool has_neighbour(const sub_slice_banks& of, uint32_t neighbour)
{
    return neighbour == 0u || (neighbour == 1u ? of.has_next : of.has_previous);
}

/// Place of a neighbour in the time slice.
__device__ __forceinline__ uint32_t place_of(uint32_t index, uint32_t neighbour)
{
    return neighbour == 2u ? index - 1u : index + neighbour;
}

/// Give each group without hits the place where its hits would be.
__device__ void fill_begins(uint32_t* begins, uint32_t n)
{
    begins[mu3e_groups] = n;
    for (uint32_t g = mu3e_groups; g-- != 0u;)
        if (begins[g] > n) begins[g] = begins[g + 1u];
}

/// Column parts of an event that take its hits.
template <typename Parameters>
__device__ __forceinline__ void write_hit(const Parameters& p, uint32_t at, uint64_t word)
{
    const position of = position_of_hit(word, p.mu3e.sensor);
    p.mu3e_hits.hit[at] = word;
    p.mu3e_hits.x[at] = of.x;
    p.mu3e_hits.y[at] = of.y;
    p.mu3e_hits.z[at] = of.z;
}

}  // namespace hlt

HLT_KERNEL(mu3e_sort_hits)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint64_t words[hlt::mu3e_max_hits];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t begins[hlt::mu3e_groups + 1u];
    __shared__ uint32_t n_hits, flags, n_own;
    if (threadIdx.x == 0) n_hits = flags = n_own = 0;
    for (uint32_t g = threadIdx.x; g <= hlt::mu3e_groups; g += blockDim.x) begins[g] = ~0u;
    __syncthreads();

    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::sub_slice_banks found = hlt::find_sub_slice(p, place);
    for (uint32_t neighbour = 0; neighbour < 3u; ++neighbour) {
        if (!hlt::has_neighbour(found, neighbour)) continue;
        const hlt::time_range times = hlt::times_of(p, neighbour);
        for (uint32_t r = found.rows.first; r < found.rows.first + found.rows.count; ++r) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[r];
            const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, hlt::place_of(place.index, neighbour));
            const uint32_t n = hlt::hits_of_bank(bank, row);
            for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
                const hlt::raw_hit hit = hlt::load_hit(bank.data, i);
                const uint32_t faults = hlt::faults_of_hit(hit, p.mu3e.sensor, p.length);
                if (neighbour == 0u && faults != 0u) atomicOr(&flags, faults);
                if (faults != 0u || hit.time < times.begin || hit.time >= times.end) continue;
                const uint32_t at = atomicAdd(&n_hits, 1u);
                if (at < hlt::mu3e_max_hits) words[at] = hlt::word_of_hit(hit, p.mu3e.sensor, hit.time + times.added);
            }
        }
    }
    __syncthreads();
    const bool too_many = n_hits > hlt::mu3e_max_hits;
    const uint32_t n = too_many ? 0u : n_hits, reach = hlt::reach_of(p), first = p.mu3e_hits.first(event);
    hlt::sort_words(words, n);
    uint32_t n_kept = 0;
    for (uint32_t begin = 0; begin < n; begin += blockDim.x) {
        const uint32_t i = begin + threadIdx.x;
        const bool keeps = i < n && (i == 0u || words[i] != words[i - 1u]);
        const bool own = i < n && hlt::time_of_hit(words[i]) - reach < p.length;
        if (own && !keeps) atomicOr(&flags, uint32_t{hlt::repeated_hits});
        uint32_t n_here;
        const uint32_t at = n_kept + hlt::block_exclusive_count(keeps, scratch, n_here);
        n_kept += n_here;
        if (!keeps) continue;
        hlt::write_hit(p, first + at, words[i]);
        const uint32_t group = hlt::group_of_hit(words[i]);
        if (i == 0u || hlt::group_of_hit(words[i - 1u]) != group) begins[group] = at;
        if (own) atomicAdd(&n_own, 1u);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    hlt::fill_begins(begins, n_kept);
    for (uint32_t g = 0; g <= hlt::mu3e_groups; ++g)
        p.mu3e_hits.group_begin[(hlt::mu3e_groups + 1u) * event + g] = begins[g];
    p.mu3e_hits.count[event] = n_kept;
    p.mu3e_hits.own[event] = n_own;
    p.events.number[2u * event] = found.slice;
    p.events.number[2u * event + 1u] = place.index;
    const uint32_t all = found.flags | flags | (too_many ? uint32_t{hlt::too_many_hits} : 0u);
    if (all != 0u) p.events.flags[event] |= all;
}
