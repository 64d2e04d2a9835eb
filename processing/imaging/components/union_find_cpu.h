// Disjoint sets in an array of parents, for one thread.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

/// The root of the set of `a`; links every second member on the way to its grandparent.
inline __attribute__((always_inline)) uint32_t root_of(uint32_t* parents, uint32_t a)
{
    while (parents[a] != a) {
        const uint32_t next = parents[parents[a]];
        parents[a] = next;
        a = next;
    }
    return a;
}

/// Join the sets of two roots. Returns the root of both, the smaller one.
inline __attribute__((always_inline)) uint32_t join_roots(uint32_t* parents, uint32_t a, uint32_t b)
{
    const uint32_t low = min_of(a, b);
    parents[max_of(a, b)] = low;
    return low;
}

}  // namespace hlt
