// The hits of a sub-slice, and of the one behind it as far as triggers reach, in the order of time, PMT and charge.
//
// In: rows and fragments of the sub-slice and of its neighbours in its time slice; km3net.pmt; km3net.clock_offset,
// which is added to the times of a source. A clock that is late by less than a sub-slice gives hits of the sub-slice
// before to this one. Out: the hits as words, the number of all and of those of the sub-slice itself, the numbers of
// time slice and sub-slice, flags. One block per event. Threads stride over the hits of a bank and append those that
// are used in any order; a bitonic network sorts them. The order is total, so the result does not depend on the
// threads. With more than km3net_max_hits, none is used. The CPU form sorts by buckets of time. Bound: km3net_max_hits.
#pragma once

#include "km3net/hits/generated/km3net_sort_hits.h"
#include "km3net/hits/hit_banks.cuh"

namespace hlt {

constexpr uint64_t no_hit = ~uint64_t{0};

/// The smallest power of two that is not below n.
__device__ uint32_t bitonic_size(uint32_t n)
{
    uint32_t size = 1;
    while (size < n) size *= 2u;
    return size;
}

/// The threads of a block sort `size` words, a power of two (K. E. Batcher, "Sorting networks and their applications",
/// AFIPS Spring Joint Computer Conference 1968).
__device__ void bitonic_sort(uint64_t* words, uint32_t size)
{
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

/// The sources of a sub-slice, the number of its time slice, and the flags of its banks as a whole.
struct sub_slice_banks {
    row_range rows;
    uint32_t slice;
    uint32_t flags;
    bool has_next;
};

/// ns that are added to the times of a source.
template <typename Parameters>
__device__ int32_t clock_offset_of(const Parameters& p, const mfp_row& row)
{
    return p.km3net.clock_offset[row.source_id % km3net_sources];
}

__device__ sub_slice_banks find_sub_slice(const raw_banks& banks, const event_row& place)
{
    sub_slice_banks found{rows_of(banks, place.mep, km3net_subdetector), 0, no_hits_bank, false};
    for (uint32_t i = found.rows.first; i < found.rows.first + found.rows.count; ++i) {
        const mfp_row row = banks.mfp_rows[i];
        found.slice = load_u32(banks.bytes + row.data_offset + 8);
        found.has_next = place.index + 1u < row.n_fragments;
        const fragment_view bank = fragment_of(banks, row, place.index);
        if (bank.type != no_bank) found.flags &= ~uint32_t{no_hits_bank};
        if (is_bad_bank(bank, row)) found.flags |= bad_hits_bank;
    }
    return found;
}

/// ns from the start of a sub-slice to the end of the hits that its triggers need.
template <typename Parameters>
__device__ uint32_t end_of_hits(const Parameters& p, const sub_slice_banks& found)
{
    return p.length + (found.has_next ? min_of(p.time_window, p.length) : 0u);
}

/// ns that are added to the times of the sub-slice before (part -1), the own one, or the one behind (1).
template <typename Parameters>
__device__ int64_t later_of_part(const Parameters& p, int32_t part, int32_t offset)
{
    return static_cast<int64_t>(part) * p.length + offset;
}

}  // namespace hlt

HLT_KERNEL(km3net_sort_hits)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint64_t words[hlt::km3net_max_hits];
    __shared__ uint32_t n_hits, flags, n_own;
    if (threadIdx.x == 0) n_hits = flags = n_own = 0;
    __syncthreads();

    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::sub_slice_banks found = hlt::find_sub_slice(p.raw_banks, place);
    const uint32_t end = hlt::end_of_hits(p, found);
    for (int32_t part = place.index == 0u ? 0 : -1; part <= (found.has_next ? 1 : 0); ++part) {
        for (uint32_t r = found.rows.first; r < found.rows.first + found.rows.count; ++r) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[r];
            const int32_t offset = hlt::clock_offset_of(p, row);
            if (part < 0 && offset <= 0) continue;
            const int64_t later = hlt::later_of_part(p, part, offset);
            const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, place.index + part);
            const uint32_t n = hlt::hits_of_bank(bank, row);
            for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
                const uint64_t hit = hlt::load_hit(bank.data, i);
                const bool known = p.km3net.pmt[hlt::pmt_of_hit(hit)].line != hlt::no_line;
                const bool inside = hlt::time_of_hit(hit) < p.length;
                const int64_t time = hlt::time_of_hit(hit) + later;
                if (part == 0) {
                    const bool unsorted = i != 0u && hlt::is_unsorted(hit, hlt::load_hit(bank.data, i - 1u));
                    const bool moved = inside && (time < 0 || time >= p.length);
                    const uint32_t found_here =
                        (known ? 0u : uint32_t{hlt::unknown_pmt}) | (inside ? 0u : uint32_t{hlt::time_outside}) |
                        (unsorted ? uint32_t{hlt::unsorted_hits} : 0u) | (moved ? uint32_t{hlt::hit_moved} : 0u);
                    if (found_here != 0u) atomicOr(&flags, found_here);
                }
                if (!known || !inside || time < 0 || time >= end) continue;
                const uint32_t at = atomicAdd(&n_hits, 1u);
                if (at < hlt::km3net_max_hits) words[at] = hlt::hit_at(hit, time);
            }
        }
    }
    __syncthreads();
    const bool too_many = n_hits > hlt::km3net_max_hits;
    const uint32_t n = too_many ? 0u : n_hits, size = hlt::bitonic_size(n);
    for (uint32_t i = n + threadIdx.x; i < size; i += blockDim.x) words[i] = hlt::no_hit;
    hlt::bitonic_sort(words, size);
    const uint32_t first = p.km3net_hits.first(event);
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        p.km3net_hits.hit[first + i] = words[i];
        const bool own = hlt::time_of_hit(words[i]) < p.length;
        if (own && (i + 1u == n || hlt::time_of_hit(words[i + 1u]) >= p.length)) n_own = i + 1u;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    p.km3net_hits.count[event] = n;
    p.km3net_hits.own[event] = n_own;
    p.events.number[2u * event] = found.slice;
    p.events.number[2u * event + 1u] = place.index;
    const uint32_t all = found.flags | flags | (too_many ? uint32_t{hlt::too_many_hits} : 0u);
    if (all != 0u) p.events.flags[event] |= all;
}
