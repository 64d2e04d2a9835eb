// The elements of each event, from their places in a column to those in an output list.
//
// In:  list.offset; the column, as words, and the placement of its collection. Out: the elements of all events, one
// after the other. One block per event; threads stride over words, or over bytes if elements are no whole words. The
// output is pinned memory of the host: threads of a warp write adjacent words, which cross the bus together, and
// nothing is written beyond the last element. Bounds: list_offsets limits the places.
#pragma once

#include "algorithms/generated/copy_list.h"

namespace hlt {

/// The threads of a block copy `n` elements.
template <typename T>
__device__ void copy_elements(T* to, const T* from, uint64_t n)
{
    for (uint64_t i = threadIdx.x; i < n; i += blockDim.x) to[i] = from[i];
}

}  // namespace hlt

HLT_KERNEL(copy_list)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint64_t place = p.list.offset[event];
    const uint64_t n = p.list.offset[event + 1u] - place;
    if (n == 0) return;

    const uint32_t begin = p.has_offset != 0 ? p.source.offset[event] / p.divisor : 0;
    const uint64_t first = (uint64_t{begin} + uint64_t{event} * p.per_event) * p.times;
    if (p.element_bytes % sizeof(uint32_t) == 0) {
        const uint64_t words = p.element_bytes / sizeof(uint32_t);
        hlt::copy_elements(p.delivered.words + place * words, p.source.words + first * words, n * words);
    } else {
        const uint64_t bytes = p.element_bytes;
        hlt::copy_elements(reinterpret_cast<uint8_t*>(p.delivered.words) + place * bytes,
                           reinterpret_cast<const uint8_t*>(p.source.words) + first * bytes, n * bytes);
    }
}
