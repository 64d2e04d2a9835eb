// Places of the sources of each event: prefix sum of the numbers of MFPs of their MEPs.
//
// In:  the ranges of rows of each MEP, which are adjacent. Out: sources.count [event], sources.offset [event + 1].
// One block; threads stride over the events.
// Bounds: each source of an event has a fragment in the batch, so the sum is at most the number of fragments.
#pragma once

#include "framework/generated/launch_types.h"
#include "raw/banks/generated/raw_source_offsets.h"

HLT_KERNEL(raw_source_offsets)
{
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t n_events = p.batch->n_events;
    uint32_t running = 0;
    for (uint32_t base = 0; base < n_events; base += blockDim.x) {
        const uint32_t event = base + threadIdx.x;
        uint32_t n = 0;
        if (event < n_events) {
            const hlt::row_range* rows = p.input.mep_rows + p.input.event_rows[event].mep * hlt::n_subdetectors;
            const hlt::row_range last = rows[hlt::n_subdetectors - 1u];
            n = last.first + last.count - rows[0].first;
        }
        uint32_t total;
        const uint32_t first = running + hlt::block_exclusive_sum(n, scratch, total);
        if (event < n_events) {
            p.sources.count[event] = n;
            p.sources.offset[event] = first;
        }
        running += total;
    }
    if (threadIdx.x == 0) p.sources.offset[n_events] = running;
}
