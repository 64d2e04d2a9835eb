// Counts the hits of an event, bytes of its banks that are not below a threshold, and lists the first of them.
//
// One block per event; threads stride over the bytes of a bank, and one thread lists the hits in their order. A bank
// that reaches beyond its MFP flags the event. Bounds: sizes of fragments.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "tiny/generated/tiny_count_hits.h"
#include "tiny/generated/tiny_types.h"

HLT_KERNEL(tiny_count_hits)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t n_hits;
    uint32_t n_listed = 0;
    if (threadIdx.x == 0) n_hits = 0;
    __syncthreads();

    const hlt::event_row event = p.raw_banks.event_rows[blockIdx.x];
    uint32_t number = 0;
    bool broken = false;
    for (uint32_t side = hlt::left; side <= hlt::right; ++side) {
        const hlt::row_range rows = hlt::rows_of(p.raw_banks, event.mep, side);
        for (uint32_t i = rows.first; i < rows.first + rows.count; ++i) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[i];
            const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, event.index);
            broken = broken || bank.type == hlt::broken_bank;
            number = hlt::load_u32(p.raw_banks.bytes + row.data_offset + 8) + event.index;
            uint32_t mine = 0;
            for (uint32_t byte = threadIdx.x; byte < bank.size; byte += blockDim.x)
                mine += bank.data[byte] >= p.threshold ? 1u : 0u;
            if (mine != 0) atomicAdd(&n_hits, mine);
            for (uint32_t byte = 0; threadIdx.x == 0 && byte < bank.size; ++byte) {
                if (bank.data[byte] < p.threshold || n_listed == hlt::listed_hits) continue;
                const uint32_t at = p.listed_hits.first(blockIdx.x) + n_listed++;
                p.listed_hits.charge[at] = bank.data[byte];
                p.listed_hits.place[at] = {static_cast<uint16_t>(side), static_cast<uint16_t>(byte)};
            }
        }
    }
    __syncthreads();

    if (threadIdx.x == 0) {
        p.hits.count[blockIdx.x] = n_hits;
        p.listed_hits.count[blockIdx.x] = n_listed;
        if (broken) p.events.flags[blockIdx.x] |= hlt::bank_error;
        if (n_hits == 0) p.events.flags[blockIdx.x] |= hlt::no_hits;
        p.events.number[blockIdx.x] = number;
    }
}
