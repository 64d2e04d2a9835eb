// Which segments belong together.
#pragma once

#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/platform.cuh"

namespace hlt {

/// Ends of the segments of an event: number 2 * segment is the inner one, the next one the outer one.
struct tpc_ends {
    const tpc_segment_end *inner, *outer;

    __device__ const tpc_segment_end& operator[](uint32_t end) const
    {
        return end % 2u == 0u ? inner[end / 2u] : outer[end / 2u];
    }
};

/// Clones of the segments of an event.
struct tpc_clones {
    const uint32_t *longer, *shorter;

    /// Whether a segment belongs to a longer one, which has none itself and no other shorter one before it.
    __device__ bool is_clone(uint32_t i) const
    {
        const uint32_t of = longer[i];
        return of != tpc_no_end && longer[of] == tpc_no_end && shorter[of] == i;
    }
    /// The clone of a segment; tpc_no_end without one.
    __device__ uint32_t clone_of(uint32_t i) const { return longer[i] == tpc_no_end ? shorter[i] : tpc_no_end; }
};

/// A way through segments that continue each other: at each end leads at most one link to another end.
struct tpc_chain {
    const uint32_t* best_end;
    tpc_clones clones;

    /// The end that an end is linked to; tpc_no_end if the choice is not mutual.
    __device__ uint32_t link(uint32_t end) const
    {
        const uint32_t other = best_end[end];
        return other != tpc_no_end && best_end[other] == end ? other : tpc_no_end;
    }
    /// Segments at one place of a chain.
    __device__ uint32_t size(uint32_t i) const { return clones.clone_of(i) != tpc_no_end ? 2u : 1u; }
};

/// The free end that a way out of an end leads to, and the number of segments behind the first one. A ring leads back
/// to the end before the first one: `is_ring`.
struct tpc_way {
    uint32_t end, n, smallest;
    bool is_ring;
};

/// More segments than tpc_max_segments end the way.
__device__ tpc_way way_out(const tpc_chain& chain, uint32_t end)
{
    tpc_way way{end, 0, end / 2u, false};
    const uint32_t start = end / 2u;
    while (way.n <= tpc_max_segments) {
        const uint32_t other = chain.link(way.end);
        if (other == tpc_no_end) break;
        if (other / 2u == start) {
            way.is_ring = true;
            break;
        }
        way.n += chain.size(other / 2u);
        way.smallest = min_of(way.smallest, other / 2u);
        way.end = other ^ 1u;
    }
    return way;
}

}  // namespace hlt
