// SciFi banks (type 64) to hits, sorted by x in each zone.
//
// A mat belongs to one bank, whose words and hits rise with the channel, and the mats of a zone follow one another in
// x. So there is nothing to sort: the hits of each mat are a run of those of its bank, which stands in the result at a
// place that a prefix sum over the mats in the order of x gives, turned round where x falls with the channel. A bank
// whose words do not rise, that has words of links that it does not read, or two edges too close to one another is
// damaged: it flags the event and gives no hits. So does a bank of which two sources have the number.
//
// How the words of an event become hits stands in hits_of_words.cuh.
// In:  the fragments of the SciFi rows, scifi_mats, scifi_read_out, scifi_hits.bound.
// Out: scifi_hits.{x, z, id, info}, scifi_hits.count [event], scifi_hits.zone_offset [event][32]; events.flags;
//      scratch.codes: how many hits the words before each word make; the form for the CPU keeps codes of hits there.
// One block per event; threads stride over the banks and share their words.
// Bounds: an event with more hits than scifi_hits.bound is flagged and gives none. On a CPU codes lie between
// scifi_hit_padding places on either side, which are read and not used; behind the hits as many are written.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/scifi/generated/scifi_decode_clusters.h"
#include "lhcb/scifi/hits_of_words.cuh"

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
    uint16_t* const numbers = p.scratch.codes + first + hlt::scifi_hit_padding;
    hlt::prefetch_fragments(p.raw_banks, rows, at.index);
    hlt::find_scifi_banks_of_two_sources(p.raw_banks, rows, seen, twice);

    uint32_t errors = 0;
    const uint32_t n_hits = hlt::decode_scifi_words(p.raw_banks, at, rows, read_out, p.scifi_mats, twice, lossy,
                                                    numbers, bound, hits, offset, errors);
    __syncthreads();
    if (n_hits > bound) errors |= hlt::overflow;
    if (errors != 0u) atomicOr(&p.events.flags[event], errors);
    for (uint32_t zone = threadIdx.x; zone < hlt::scifi_zone_stride; zone += blockDim.x)
        zone_offset[zone] = n_hits <= bound ? offset[read_out.first_place[zone]] : uint16_t{0};
    if (threadIdx.x == 0) p.scifi_hits.count[event] = n_hits <= bound ? n_hits : 0u;
}
