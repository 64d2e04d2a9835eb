// Places of the elements of each event in an output list: prefix sum of the counts, at most the capacity of the list.
//
// In:  list.count [event]. Out: list.offset [event + 1]; the flag `left_out` of each event with elements that do not
// fit. Events come in order, so the same elements fit for any number of threads. One block; threads stride over the
// events. Bounds: the capacity.
#pragma once

#include "algorithms/generated/list_offsets.h"
#include "framework/generated/launch_types.h"

HLT_KERNEL(list_offsets)
{
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t n_events = p.batch->n_events;
    uint32_t running = 0;
    for (uint32_t base = 0; base < n_events; base += blockDim.x) {
        const uint32_t event = base + threadIdx.x;
        const uint32_t n = event < n_events ? p.list.count[event] : 0;
        uint32_t total;
        const uint32_t before = hlt::block_exclusive_sum(n, scratch, total);
        const uint32_t room = p.capacity - running;
        if (event < n_events) {
            p.list.offset[event] = running + hlt::min_of(before, room);
            if (n > room - hlt::min_of(before, room)) p.events.flags[event] |= p.left_out;
        }
        running += hlt::min_of(total, room);
    }
    if (threadIdx.x == 0) p.list.offset[n_events] = running;
}
