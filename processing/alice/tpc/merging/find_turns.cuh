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

#include "alice/tpc/merging/generated/tpc_find_turns.h"
#include "alice/tpc/merging/links.cuh"
#include "alice/tpc/merging/near_segments.cuh"
#include "alice/tpc/merging/segment_key.cuh"

namespace hlt {

/// Sum of chi2 and of chi2 for the way, in both directions between two ends; tpc_no_continuation if one is too large.
__device__ float score_of_turn(const tpc_continuation& limits, const tpc_segment_end& a, const tpc_segment_end& b,
                               float max_chi2, float chi2_of_gap)
{
    if (differs_too_much(limits, a, b, max_chi2) || misses(limits, a, b, max_chi2)) return tpc_no_continuation;
    const tpc_difference there = continuation(limits, a, b, false);
    if (!(there.chi2 < max_chi2)) return tpc_no_continuation;
    const tpc_difference back = continuation(limits, b, a, false);
    if (!(back.chi2 < max_chi2)) return tpc_no_continuation;
    return (there.chi2 + back.chi2) + chi2_of_gap * (max_of(there.gap, 0.f) + max_of(back.gap, 0.f));
}

}  // namespace hlt

HLT_KERNEL(tpc_find_turns)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x), first = p.tpc_tracks.first(event);
    const uint32_t* const begins = p.tpc_tracks.bin_begins + event * (hlt::tpc_segment_bins + 1u);
    const hlt::tpc_ends ends{p.tpc_tracks.inner + first, p.tpc_tracks.outer + first};
    const hlt::tpc_chain chain{p.tpc_tracks.best_end + 2u * first,
                               {p.tpc_tracks.longer + first, p.tpc_tracks.shorter + first}};
    const hlt::tpc_continuation limits{p.distance, p.angle, p.bend, p.z, p.slope, p.max_gap, p.max_overlap};
    const float min_curvature2 = 1.f / (p.max_turning_radius * p.max_turning_radius);
    const auto takes_part = [&](uint32_t i) {
        return !(hlt::square(ends[2u * i].curvature) < min_curvature2) && !chain.clones.is_clone(i);
    };
    const uint32_t n = p.tpc_tracks.count[event], part = blockIdx.x - event * hlt::tpc_merging_parts;
    const uint32_t end = n * (part + 1u) / hlt::tpc_merging_parts;
    for (uint32_t place = n * part / hlt::tpc_merging_parts + threadIdx.x; place < end; place += blockDim.x) {
        const uint32_t i = p.tpc_tracks.sorted[first + place];
        const uint32_t own_chain = takes_part(i) ? hlt::chain_of(chain, i) : hlt::tpc_no_end;
        hlt::tpc_turn best{hlt::tpc_no_continuation, hlt::tpc_no_end};
        if (own_chain != hlt::tpc_no_end) {
            const hlt::tpc_segment_key key = hlt::key_of(ends[2u * i], ends[2u * i + 1u], i);
            hlt::for_near_bins(begins, p.tpc_tracks.bin[first + i], [&](uint32_t from_key, uint32_t to_key) {
                for (uint32_t at = from_key; at < to_key; ++at) {
                    const hlt::tpc_segment_key& of_other = p.tpc_tracks.key[first + at];
                    if (hlt::keys_exclude(limits, key, of_other, p.max_turn_chi2)) continue;
                    const uint32_t other = of_other.segment;
                    if (other == i || !takes_part(other)) continue;
                    float score = hlt::tpc_no_continuation;
                    for (uint32_t own = 2u * i; own < 2u * i + 2u; ++own)
                        for (uint32_t k = 2u * other; k < 2u * other + 2u; ++k)
                            score = hlt::min_of(
                                score, hlt::score_of_turn(limits, ends[own], ends[k], p.max_turn_chi2, p.chi2_of_gap));
                    if (!(score < hlt::tpc_no_continuation) || score > best.score) continue;
                    const uint32_t of = hlt::chain_of(chain, other);
                    if (of != own_chain && of != hlt::tpc_no_end) best = hlt::better_turn(best, {score, of});
                }
            });
        }
        p.tpc_tracks.turn_score[first + i] = best.score;
        p.tpc_tracks.turn_chain[first + i] = best.chain;
    }
}
