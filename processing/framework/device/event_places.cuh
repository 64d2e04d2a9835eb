// Places of the objects of each event in a buffer that the events of a batch share.
#pragma once

#include "framework/generated/launch_types.h"

namespace hlt {

/// Prefix sum of the requested places of the events, by one block whose threads stride over the events.
///
/// `wanted(event)` is the maximum number of objects of an event; `padding` free places follow each event with objects.
/// An event that wants more than `most`, or that does not fit in the `size` places of the buffer, gets bound 0 and is
/// flagged: it stays in the batch, without objects. Out: bound [event]; offset [event + 1], never beyond `size`.
template <typename Wanted>
__device__ void place_events(uint32_t n_events, const Wanted& wanted, uint32_t most, uint32_t padding, uint32_t size,
                             uint32_t* bound, uint32_t* offset, uint32_t* flags)
{
    __shared__ uint32_t scratch[max_block_size / warp_size];

    uint32_t running = 0;
    for (uint32_t base = 0; base < n_events; base += blockDim.x) {
        const uint32_t event = base + threadIdx.x;
        const uint32_t n_wanted = event < n_events ? wanted(event) : 0u;
        const uint32_t n = n_wanted <= most ? n_wanted : 0u;
        const uint32_t places = n > 0u ? n + padding : 0u;
        uint32_t total;
        const uint32_t first = running + block_exclusive_sum(places, scratch, total);
        const bool fits = first <= size && places <= size - first;
        if (event < n_events) {
            offset[event] = min_of(first, size);
            bound[event] = fits ? n : 0u;
            if (!fits || n != n_wanted) flags[event] |= overflow;
        }
        running = min_of(running + total, size + 1u);
    }
    if (threadIdx.x == 0) offset[n_events] = min_of(running, size);
}

}  // namespace hlt
