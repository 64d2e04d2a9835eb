// Which segments belong together.
#pragma once

#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/platform.cuh"

namespace hlt {

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

/// Calls `visit(segment)` for the segments of the chain of a segment, without clones; false if they and their clones
/// are more than tpc_max_segments: it then ends early.
template <typename Visit>
__device__ bool for_chain(const tpc_chain& chain, uint32_t i, const Visit& visit)
{
    visit(i);
    uint32_t n = chain.size(i);
    for (uint32_t side = 0; side < 2u; ++side) {
        uint32_t end = 2u * i + side;
        while (n <= tpc_max_segments) {
            const uint32_t other = chain.link(end);
            if (other == tpc_no_end) break;
            if (other / 2u == i) return true;
            visit(other / 2u);
            n += chain.size(other / 2u);
            end = other ^ 1u;
        }
    }
    return n <= tpc_max_segments;
}

/// The number of the chain of a segment, which is its first segment; tpc_no_end if the chain is too long.
__device__ uint32_t chain_of(const tpc_chain& chain, uint32_t i)
{
    uint32_t smallest = i;
    const bool is_whole = for_chain(chain, i, [&](uint32_t segment) { smallest = min_of(smallest, segment); });
    return is_whole ? smallest : tpc_no_end;
}

/// Another chain on the same helix, and how well it continues a segment or a chain.
struct tpc_turn {
    float score;
    uint32_t chain;
};

__device__ tpc_turn better_turn(const tpc_turn& a, const tpc_turn& b)
{
    return b.score < a.score || (b.score == a.score && b.chain < a.chain) ? b : a;
}

/// The best turn of each segment.
struct tpc_turns {
    const float* score;
    const uint32_t* chain;

    __device__ uint32_t of_chain(const tpc_chain& all, uint32_t number) const
    {
        tpc_turn best{score[number], chain[number]};
        for_chain(all, number, [&](uint32_t i) { best = better_turn(best, {score[i], chain[i]}); });
        return best.chain;
    }
    /// The chain that belongs to a chain: each is the best one of the other. tpc_no_end without one.
    __device__ uint32_t partner_of(const tpc_chain& all, uint32_t number) const
    {
        const uint32_t other = of_chain(all, number);
        return other != tpc_no_end && of_chain(all, other) == number ? other : tpc_no_end;
    }
};

}  // namespace hlt
