// The end of another segment that continues each end of a segment best.
//
// In:  ends and bins of the segments, clones. Out: tpc_tracks.best_end. A particle leaves a slice at its side, crosses
// the central electrode, or turns back: in each case its way goes on from an end of a segment to an end of another one,
// on a helix. chi2 of five differences has a limit. Of several segments on a helix the next one is to win, though its
// differences need not be the smallest ones: the smallest sum of chi2 and a chi2 for the length of the way decides; of
// equal ones the first end. Clones take no part. An outer and an inner end at the central electrode may be those of a
// track of another collision, whose z is wrong in opposite directions. Of most segments the search reads only slopes
// and curvatures, which lie by bins. Blocks of an event share its segments in the order of bins: those of a block have
// the same near segments, which so stay in the cache. Threads stride over the segments of a block. Bounds: those of the
// tracks.
#pragma once

#include "alice/tpc/merging/generated/tpc_link_segments.h"
#include "alice/tpc/merging/links.cuh"
#include "alice/tpc/merging/near_segments.cuh"
#include "alice/tpc/merging/segment_key.cuh"

HLT_KERNEL(tpc_link_segments)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x), first = p.tpc_tracks.first(event);
    const uint32_t* const begins = p.tpc_tracks.bin_begins + event * (hlt::tpc_segment_bins + 1u);
    const hlt::tpc_ends ends{p.tpc_tracks.inner + first, p.tpc_tracks.outer + first};
    const hlt::tpc_clones clones{p.tpc_tracks.longer + first, p.tpc_tracks.shorter + first};
    const hlt::tpc_continuation limits{p.distance, p.angle, p.bend, p.z, p.slope, p.max_gap, p.max_overlap};
    const float min_curvature2 = 1.f / (p.max_turning_radius * p.max_turning_radius);
    const uint32_t n = p.tpc_tracks.count[event], part = blockIdx.x - event * hlt::tpc_merging_parts;
    const uint32_t end = n * (part + 1u) / hlt::tpc_merging_parts;
    for (uint32_t place = n * part / hlt::tpc_merging_parts + threadIdx.x; place < end; place += blockDim.x) {
        const uint32_t i = p.tpc_tracks.sorted[first + place];
        float best[2] = {hlt::tpc_no_continuation, hlt::tpc_no_continuation};
        uint32_t found[2] = {hlt::tpc_no_end, hlt::tpc_no_end};
        if (!clones.is_clone(i)) {
            const hlt::tpc_segment_key key = hlt::key_of(ends[2u * i], ends[2u * i + 1u], i);
            hlt::for_near_bins(begins, p.tpc_tracks.bin[first + i], [&](uint32_t from_key, uint32_t to_key) {
                for (uint32_t at = from_key; at < to_key; ++at) {
                    const hlt::tpc_segment_key& of_other = p.tpc_tracks.key[first + at];
                    if (hlt::keys_exclude(limits, key, of_other, p.max_chi2)) continue;
                    const uint32_t other = of_other.segment;
                    if (other == i) continue;
                    for (uint32_t own = 0; own < 2u; ++own)
                        for (uint32_t k = 2u * other; k < 2u * other + 2u; ++k) {
                            const hlt::tpc_segment_end& from = ends[2u * i + own];
                            // Only a particle that turns in the TPC comes back through its inner side.
                            if (own == 0u && k % 2u == 0u && hlt::square(from.curvature) < min_curvature2) continue;
                            if (hlt::differs_too_much(limits, from, ends[k], p.max_chi2) ||
                                hlt::misses(limits, from, ends[k], p.max_chi2))
                                continue;
                            // Ends of turns have long ways, on which other tracks are as near: they stay in time.
                            const bool out_of_time = own != k % 2u && hlt::is_out_of_time(from, ends[k]);
                            const hlt::tpc_difference to = hlt::continuation(limits, from, ends[k], out_of_time);
                            if (!(to.chi2 < p.max_chi2)) continue;
                            const float score = to.chi2 + (to.gap > 0.f ? to.gap * p.chi2_of_gap : 0.f);
                            if ((score < best[own] || (score == best[own] && k < found[own])) &&
                                !clones.is_clone(other)) {
                                best[own] = score;
                                found[own] = k;
                            }
                        }
                }
            });
        }
        p.tpc_tracks.best_end[2u * (first + i)] = found[0];
        p.tpc_tracks.best_end[2u * (first + i) + 1u] = found[1];
    }
}
