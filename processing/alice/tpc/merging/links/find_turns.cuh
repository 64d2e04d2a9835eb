// The chain of linked segments that continues the helix of a segment of a soft particle best.
//
// In:  ends, bins and links of the segments, clones. Out: tpc_tracks.turn_score and turn_chain. A particle that turns
// several times leaves segments near each other. An end may be linked to a later turn than the next one; then the turns
// between are a chain of their own, all of whose ends may be linked already. So all ends of both chains are compared,
// also those that have a link: chi2 must be below max_turn_chi2 in both directions. The smallest sum of both chi2, and
// of chi2 for the length of both ways, decides; of equal ones the first chain. Clones and chains that are too long take
// no part. Blocks of an event share its segments in the order of bins, as in tpc_link_segments; threads stride over the
// segments of a block. Bounds: those of the tracks.
#pragma once

#include "alice/tpc/merging/links/generated/tpc_find_turns.h"
#include "alice/tpc/merging/links/links.cuh"
#include "alice/tpc/merging/segments/near_ends.cuh"

namespace hlt {

/// Segments that take part in the search for turns, and its constants.
struct tpc_turn_search {
    tpc_continuation limits;
    float max_chi2, chi2_of_gap, min_curvature2;
    tpc_ends ends;
    tpc_chain chain;

    __device__ bool takes_part(uint32_t i) const
    {
        return !(square(ends[2u * i].curvature) < min_curvature2) && !chain.clones.is_clone(i);
    }
    /// The number of the chain of a segment; tpc_no_end if it takes no part.
    __device__ uint32_t chain_of(uint32_t i) const { return takes_part(i) ? hlt::chain_of(chain, i) : tpc_no_end; }
    /// Takes end k if it continues end `own` better than any before, and is of another chain than that of `own`.
    __device__ void take(tpc_turn& best, uint32_t own_chain, uint32_t own, uint32_t k) const;
};

__device__ tpc_turn_search turn_search_of(const tpc_find_turns_parameters& p, uint32_t first)
{
    return {{p.distance, p.angle, p.bend, p.z, p.slope, p.max_gap, p.max_overlap},
            p.max_turn_chi2,
            p.chi2_of_gap,
            1.f / (p.max_turning_radius * p.max_turning_radius),
            {p.tpc_tracks.inner + first, p.tpc_tracks.outer + first},
            {p.tpc_tracks.best_end + 2u * first, {p.tpc_tracks.longer + first, p.tpc_tracks.shorter + first}}};
}

__device__ void tpc_turn_search::take(tpc_turn& best, uint32_t own_chain, uint32_t own, uint32_t k) const
{
    const float score = score_of_both_ways(limits, ends[own], ends[k], max_chi2, chi2_of_gap);
    if (!(score < tpc_no_continuation) || score > best.score) return;
    const uint32_t of = chain_of(k / 2u);
    if (of != own_chain && of != tpc_no_end) best = better_turn(best, {score, of});
}

}  // namespace hlt

HLT_KERNEL(tpc_find_turns)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x), first = p.tpc_tracks.first(event);
    const uint32_t* const begins = p.tpc_tracks.bin_begins + event * (hlt::tpc_segment_bins + 1u);
    const uint32_t* const sorted = p.tpc_tracks.sorted + first;
    const hlt::tpc_near_ends near = hlt::near_ends_of(p, first);
    const hlt::tpc_turn_search find = hlt::turn_search_of(p, first);
    const uint32_t n = p.tpc_tracks.count[event], part = blockIdx.x - event * hlt::tpc_merging_parts;
    const uint32_t end = n * (part + 1u) / hlt::tpc_merging_parts;
    for (uint32_t place = n * part / hlt::tpc_merging_parts + threadIdx.x; place < end; place += blockDim.x) {
        const uint32_t i = sorted[place], own_chain = find.chain_of(i);
        hlt::tpc_turn best{hlt::tpc_no_continuation, hlt::tpc_no_end};
        if (own_chain != hlt::tpc_no_end)
            hlt::for_near_bins(begins, p.tpc_tracks.bin[first + i], [&](uint32_t first_near, uint32_t end_near) {
                for (uint32_t at = 2u * first_near; at < 2u * end_near; ++at)
                    for (uint32_t own = 2u * i; own < 2u * i + 2u; ++own) {
                        if (near.differs_too_much(find.limits, find.ends[own], at, find.max_chi2)) continue;
                        const uint32_t k = 2u * sorted[at / 2u] + at % 2u;
                        if (k / 2u != i && !hlt::misses(find.limits, find.ends[own], find.ends[k], find.max_chi2))
                            find.take(best, own_chain, own, k);
                    }
            });
        p.tpc_tracks.turn_score[first + i] = best.score;
        p.tpc_tracks.turn_chain[first + i] = best.chain;
    }
}
