// Number of hits that the UT banks of each event announce, before the decoding.
//
// Malformed banks flag the event and have no hits (bank.cuh). Skipped events (skipped_events.cuh) are not read.
// In:  the fragments of the UT rows. Out: ut_hits.bound [event]; events.flags.
// One block per event, threads stride over its banks.
// Bounds: a fragment has less than 2^15 hits and a MEP at most 2^12 UT rows, so the sum fits in 32 bits;
// ut_hit_offsets flags events that do not fit in the buffers.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/raw_data/skipped_events.cuh"
#include "lhcb/ut/bank.cuh"
#include "lhcb/ut/generated/ut_estimate_input_size.h"

HLT_KERNEL(ut_estimate_input_size)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    if (hlt::is_skipped(p.events.flags[event])) {
        if (threadIdx.x == 0) p.ut_hits.bound[event] = 0;
        return;
    }
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::ut_rows_of(p.raw_banks, place.mep);
    uint32_t n_hits = 0, n_broken = 0;
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
        const hlt::ut_bank bank = hlt::ut_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row);
        n_hits += bank.n_hits;
        n_broken += bank.broken ? 1u : 0u;
    }
    uint32_t of_all, broken_of_all;
    hlt::block_exclusive_sum(n_hits, scratch, of_all);
    hlt::block_exclusive_sum(n_broken, scratch, broken_of_all);
    if (threadIdx.x != 0) return;
    p.ut_hits.bound[event] = of_all;
    if (broken_of_all > 0u) p.events.flags[event] |= hlt::bank_error;
}
