// Disjoint sets in an array of parents, which the threads of a block join at the same time.
//
// A parent has a smaller number than its child, so the root of a set is its smallest member (A. Hennequin, Performance
// optimization for the LHCb experiment, PhD thesis, Sorbonne Universite, 2022, section 4.2.3). Every change is an
// atomicMin, so no thread can undo the link of another one.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

/// The root of the set of `a`. Every second member on the way is linked to its grandparent, so later searches are
/// short.
__device__ uint32_t find_root(uint32_t* parents, uint32_t a)
{
    // Other threads lower the parents meanwhile. A value that is out of date is a former ancestor, which is in the same
    // set; join_sets finds out whether the result is still a root.
    for (;;) {
        const uint32_t parent = parents[a];
        if (parent == a) return a;
        const uint32_t next = parents[parent];
        if (next != parent) atomicMin(&parents[a], next);
        a = next;
    }
}

/// Join the sets of `a` and `b` (D. P. Playne and K. Hawick, IEEE Trans. Parallel Distrib. Syst. 29 (2018) 1217,
/// doi:10.1109/TPDS.2018.2799216; the same thesis, algorithm 7).
__device__ void join_sets(uint32_t* parents, uint32_t a, uint32_t b)
{
    a = find_root(parents, a);
    b = find_root(parents, b);
    while (a != b) {
        if (a < b) {
            const uint32_t smaller = a;
            a = b;
            b = smaller;
        }
        const uint32_t old = atomicMin(&parents[a], b);
        // If `a` was no root any more, its former parent must be joined, too.
        a = old == a ? b : old;
    }
}

}  // namespace hlt
