// SciFi banks (type 64) to hits, sorted by x in each zone.
//
// A mat belongs to one bank. The words and hits of a bank ascend by channel, and the mats of a zone are consecutive in
// x. So no sort is needed: the hits of each mat are a consecutive range of the hits of its bank. A prefix sum over the
// mats in the order of x gives the place of this range, which is reversed where x falls with the channel. A bank is
// damaged if its words do not ascend, if it has words of links that it does not read, or if two edges are too close to
// each other. A damaged bank flags the event and gives no hits; so does a bank number that two sources have.
//
// In banks of versions 7 and 8 this holds for no bank; their hits are counted and sorted by SiPM (hits_of_links.cuh).
// hits_of_words.cuh makes hits from the words of an event of earlier versions.
// Hits of masked channels are dropped last.
// In:  the fragments of the SciFi rows, scifi_mats, scifi_read_out, scifi_sipms, scifi_hits.bound.
// Out: scifi_hits.{x, z, id, info}, scifi_hits.count [event], scifi_hits.zone_offset [event][32]; events.flags;
//      scratch.codes: number of hits of all words before each word; for versions 7 and 8, and in the form for the CPU,
//      codes of hits.
// One block per event; threads stride over the banks and share their words.
// Bounds: an event with more hits than scifi_hits.bound is flagged and gives none. On a CPU the codes have
// scifi_hit_padding places before and behind them, which are loaded and ignored; the same number of places behind the
// hits is overwritten.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/scifi/generated/scifi_decode_clusters.h"
#include "lhcb/scifi/hits_of_links.cuh"
#include "lhcb/scifi/hits_of_words.cuh"

namespace hlt {

/// Shared memory of the two ways to decode an event.
union scifi_event_hits {
    scifi_event_words words;
    scifi_sipm_hits sipms;
};

/// As decode_scifi_words, for banks of versions 7 and 8. `codes` is scratch for one code per hit, `event` shared
/// memory.
__device__ uint32_t decode_scifi_links(const raw_banks& banks, const event_row& at, const row_range& rows,
                                       const scifi_read_out& read_out, const scifi_mat* mats, const scifi_sipms& sipms,
                                       bool lossy, uint16_t* codes, uint32_t bound, const scifi_hit_columns& hits,
                                       uint16_t* offset, scifi_sipm_hits& event, uint32_t& errors)
{
    __shared__ uint32_t scratch[max_block_size / warp_size];
    event.clear(threadIdx.x, blockDim.x);
    __syncthreads();
    count_scifi_hits_of_links(banks, at, rows, sipms, lossy, threadIdx.x, blockDim.x, event, errors);
    __syncthreads();
    for (uint32_t mat = threadIdx.x; mat < n_scifi_mats; mat += blockDim.x)
        offset[mat] = static_cast<uint16_t>(event.finish_mat(mat, errors));
    __syncthreads();
    const uint32_t n_hits = sum_in_place(offset, n_scifi_mats, scratch);
    if (n_hits > bound) return n_hits;
    write_scifi_codes_of_links(banks, at, rows, sipms, lossy, threadIdx.x, blockDim.x, offset, codes, event, errors);
    __syncthreads();
    for (uint32_t place = threadIdx.x; place < n_scifi_mats; place += blockDim.x) {
        const uint32_t index = read_out.mat[place], first = offset[place], end = offset[place + 1u];
        const scifi_mat& mat = mats[index];
        for (uint32_t i = first; i < end; ++i)
            hits.store(mat.falls != 0u ? first + end - 1u - i : i, codes[i], mat, index);
    }
    return n_hits;
}

/// Bank numbers that two rows have.
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

/// Drop the hits of masked channels from the hits of an event, which keep their order. Returns the number of the
/// others. `scratch` is that of block_exclusive_count.
__device__ uint32_t drop_masked_scifi_hits(const scifi_read_out& read_out, const scifi_hit_columns& hits,
                                           uint16_t* __restrict__ zone_offset, uint32_t* scratch)
{
    uint32_t n_kept = 0, begin = zone_offset[0];
    for (uint32_t zone = 0; zone < n_scifi_zones; ++zone) {
        const uint32_t end = zone_offset[zone + 1u], first_kept = n_kept;
        for (uint32_t base = begin; base < end; base += blockDim.x) {
            const uint32_t i = min_of(base + threadIdx.x, end - 1u);
            const float x = hits.x[i], z = hits.z[i];
            const uint32_t id = hits.id[i];
            const uint16_t info = hits.info[i];
            const uint32_t channel = id - scifi_hit_columns::first_id(0);
            const bool masked = (read_out.masked[channel / 32u] >> channel % 32u & 1u) != 0u;
            const bool keeps = base + threadIdx.x < end && !masked;
            uint32_t n_of_block;
            // A barrier inside separates the loads from the stores, which may reach places of other threads.
            const uint32_t at = n_kept + block_exclusive_count(keeps, scratch, n_of_block);
            n_kept += n_of_block;
            if (!keeps) continue;
            hits.x[at] = x;
            hits.z[at] = z;
            hits.id[at] = id;
            hits.info[at] = info;
        }
        if (threadIdx.x == 0) zone_offset[zone] = static_cast<uint16_t>(first_kept);
        begin = end;
        // The next zone without hits has no other barrier between this read of its offset and the change of it.
        __syncthreads();
    }
    for (uint32_t zone = n_scifi_zones + threadIdx.x; zone < scifi_zone_stride; zone += blockDim.x)
        zone_offset[zone] = static_cast<uint16_t>(n_kept);
    return n_kept;
}

}  // namespace hlt

HLT_KERNEL(scifi_decode_clusters)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ hlt::scifi_bank_set seen, twice;
    __shared__ hlt::scifi_event_hits hits_of_event;
    __shared__ uint16_t offset[hlt::n_scifi_mats + 1u];  // of the hits of each mat, by place
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

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
    uint16_t* const numbers = p.scratch.codes + first + hlt::scifi_hit_padding;
    hlt::prefetch_fragments(p.raw_banks, rows, at.index);

    uint32_t errors = 0, n_hits;
    if (hlt::are_scifi_rows_of_links(p.raw_banks, rows, *p.scifi_sipms)) {
        n_hits = hlt::decode_scifi_links(p.raw_banks, at, rows, read_out, p.scifi_mats, *p.scifi_sipms, lossy, numbers,
                                         bound, hits, offset, hits_of_event.sipms, errors);
    } else {
        hlt::find_scifi_banks_of_two_sources(p.raw_banks, rows, seen, twice);
        n_hits = hlt::decode_scifi_words(p.raw_banks, at, rows, read_out, p.scifi_mats, twice, lossy, numbers, bound,
                                         hits, offset, hits_of_event.words, errors);
    }
    __syncthreads();
    if (n_hits > bound) errors |= hlt::overflow;
    if (errors != 0u) atomicOr(&p.events.flags[event], errors);
    for (uint32_t zone = threadIdx.x; zone < hlt::scifi_zone_stride; zone += blockDim.x)
        zone_offset[zone] = n_hits <= bound ? offset[read_out.first_place[zone]] : uint16_t{0};
    if (n_hits > bound) n_hits = 0;
    if (read_out.n_masked != 0u) {
        __syncthreads();
        n_hits = hlt::drop_masked_scifi_hits(read_out, hits, zone_offset, scratch);
    }
    if (threadIdx.x == 0) p.scifi_hits.count[event] = n_hits;
}
