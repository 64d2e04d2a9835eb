// SciFi banks (type 64) to hits, sorted by x in each zone.
//
// A mat belongs to one bank, whose words and hits rise with the channel, and the mats of a zone follow one another in
// x. So there is nothing to sort: the hits of each mat are a run of those of its bank, which stands in the result at a
// place that a prefix sum over the mats in the order of x gives, turned round where x falls with the channel. A bank
// whose words do not rise, that has words of links that it does not read, or two edges too close to one another is
// damaged: it flags the event and gives no hits. So does a bank of which two sources have the number.
//
// What a block of many threads does stands in hits_of_mats.cuh, what one thread alone in hits_of_banks.cuh.
// In:  the fragments of the SciFi rows, scifi_mats, scifi_read_out, scifi_hits.bound.
// Out: scifi_hits.{x, z, id, info}, scifi_hits.count [event], scifi_hits.zone_offset [event][32]; events.flags;
//      scratch.codes, which one thread alone uses.
// One block per event; threads stride over the banks and share their words, then over the mats.
// Bounds: an event with more hits than scifi_hits.bound is flagged and gives none. Codes lie between scifi_hit_padding
// places on either side, which are read and not used; behind the hits as many are written and not used.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/scifi/generated/scifi_decode_clusters.h"
#include "lhcb/scifi/hits_of_banks.cuh"
#include "lhcb/scifi/hits_of_mats.cuh"

namespace hlt {

/// Each bank number that two rows have.
__device__ void find_scifi_banks_of_two_sources(const raw_banks& banks, const row_range& rows, scifi_bank_set& seen,
                                                scifi_bank_set& twice)
{
    seen.clear();
    twice.clear();
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const uint32_t number = scifi_bank_number(banks.mfp_rows[rows.first + i]);
        if (number < n_scifi_banks && seen.add(number)) twice.add(number);
    }
    __syncthreads();
}

/// Exclusive prefix sum over the mats, in place; behind the last one the sum, which is returned.
__device__ uint32_t sum_scifi_mats(uint16_t* of_mat, uint32_t* scratch)
{
    // Each thread takes mats that stand together, so that one prefix sum over the threads is enough.
    const uint32_t of_thread = (n_scifi_mats + blockDim.x - 1u) / blockDim.x;
    const uint32_t first = min_of(threadIdx.x * of_thread, n_scifi_mats);
    const uint32_t last = min_of(first + of_thread, n_scifi_mats);
    uint32_t mine = 0, total;
    for (uint32_t place = first; place < last; ++place) mine += of_mat[place];
    uint32_t before = block_exclusive_sum(mine, scratch, total);
    for (uint32_t place = first; place < last; ++place) {
        const uint32_t n = of_mat[place];
        of_mat[place] = static_cast<uint16_t>(before);
        before += n;
    }
    if (threadIdx.x == 0) of_mat[n_scifi_mats] = static_cast<uint16_t>(total);
    __syncthreads();
    return total;
}

}  // namespace hlt

HLT_KERNEL(scifi_decode_clusters)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ hlt::scifi_bank_set seen, twice;
    __shared__ uint16_t offset[hlt::n_scifi_mats + 1u];  // of the hits of each mat, by place

    const uint32_t bound = p.scifi_hits.bound[event];
    uint16_t* __restrict__ zone_offset = p.scifi_hits.zone_offset + event * hlt::scifi_zone_stride;
    if (bound == 0u) {
        for (uint32_t zone = threadIdx.x; zone < hlt::scifi_zone_stride; zone += blockDim.x) zone_offset[zone] = 0;
        if (threadIdx.x == 0) p.scifi_hits.count[event] = 0;
        return;
    }
    const uint32_t first = p.scifi_hits.first(event);
    const hlt::scifi_read_out& read_out = *p.scifi_read_out;
    const hlt::event_row at = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::scifi_rows_of(p.raw_banks, at.mep);
    const bool lossy = p.lossy != 0u;
    const hlt::scifi_hit_columns hits{p.scifi_hits.x + first, p.scifi_hits.z + first, p.scifi_hits.id + first,
                                      p.scifi_hits.info + first};
    hlt::find_scifi_banks_of_two_sources(p.raw_banks, rows, seen, twice);

    uint32_t n_hits = 0, errors = 0;
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
    if (blockDim.x == 1u) {
        hlt::scifi_runs runs{};
        uint16_t* const codes = p.scratch.codes + first + hlt::scifi_hit_padding;
        n_hits = hlt::write_scifi_codes(p.raw_banks, at, rows, read_out, twice, lossy, codes, bound, runs, errors);
        if (n_hits <= bound) hlt::write_scifi_hits(read_out, p.scifi_mats, codes, runs, hits, offset);
    } else
#endif
    {
        __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
        __shared__ hlt::warp_runs<hlt::scifi_bank_words> runs[hlt::max_block_size / hlt::warp_size];
        __shared__ hlt::scifi_mat_words words;
        words.clear();
        __syncthreads();
        errors = hlt::find_scifi_words(p.raw_banks, at, rows, read_out, twice, runs, words);
        __syncthreads();
        for (uint32_t place = threadIdx.x; place < hlt::n_scifi_mats; place += blockDim.x) {
            const uint32_t index = read_out.mat[place], number = p.scifi_mats[index].bank;
            const hlt::scifi_bank bank = words.of_mat(p.raw_banks, read_out, index, number);
            const hlt::scifi_walk walk =
                hlt::walk_scifi_bank(bank, read_out.n_mats[number], lossy, hlt::scifi_hit_counter{});
            if (walk.broken) words.broken.add(number);
            offset[place] = static_cast<uint16_t>(walk.n_hits);
        }
        __syncthreads();
        for (uint32_t number = threadIdx.x; number < hlt::n_scifi_banks; number += blockDim.x) {
            if (!words.broken.has(number)) continue;
            errors |= hlt::bank_error;
            for (uint32_t mat = 0; mat < read_out.n_mats[number]; ++mat)
                offset[p.scifi_mats[read_out.first_mat[number] + mat].place] = 0;
        }
        __syncthreads();
        n_hits = hlt::sum_scifi_mats(offset, scratch);
        for (uint32_t place = threadIdx.x; place < hlt::n_scifi_mats && n_hits <= bound; place += blockDim.x) {
            const uint32_t begin = offset[place], end = offset[place + 1u];
            if (begin == end) continue;
            const uint32_t index = read_out.mat[place];
            const hlt::scifi_mat& mat = p.scifi_mats[index];
            const bool falls = mat.falls != 0u;
            const hlt::scifi_bank bank = words.of_mat(p.raw_banks, read_out, index, mat.bank);
            hlt::walk_scifi_bank(bank, read_out.n_mats[mat.bank], lossy,
                                 hlt::scifi_mat_writer{hits, mat, index, falls ? end - 1u : begin, falls ? ~0u : 1u});
        }
    }
    if (n_hits > bound) errors |= hlt::overflow;
    if (errors != 0u) atomicOr(&p.events.flags[event], errors);
    for (uint32_t zone = threadIdx.x; zone < hlt::scifi_zone_stride; zone += blockDim.x)
        zone_offset[zone] = n_hits <= bound ? offset[read_out.first_place[zone]] : uint16_t{0};
    if (threadIdx.x == 0) p.scifi_hits.count[event] = n_hits <= bound ? n_hits : 0u;
}
