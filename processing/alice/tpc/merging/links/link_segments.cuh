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

#include "alice/tpc/merging/links/generated/tpc_link_segments.h"
#include "alice/tpc/merging/links/links.cuh"
#include "alice/tpc/merging/segments/near_ends.cuh"

namespace hlt {

/// Constants of the search for links, and the clones of an event.
struct tpc_link_search {
    tpc_continuation limits;
    float max_chi2, chi2_of_gap, min_curvature2;
    tpc_clones clones;
};

__device__ tpc_link_search link_search_of(const tpc_link_segments_parameters& p, uint32_t first)
{
    return {{p.distance, p.angle, p.bend, p.z, p.slope, p.max_gap, p.max_overlap},
            p.max_chi2,
            p.chi2_of_gap,
            1.f / (p.max_turning_radius * p.max_turning_radius),
            {p.tpc_tracks.longer + first, p.tpc_tracks.shorter + first}};
}

/// The end that continues an end best, of those taken so far.
struct tpc_best_end {
    float score = tpc_no_continuation;
    uint32_t end = tpc_no_end;

    /// Takes end k if it continues end `own`, of another segment, better.
    __device__ void take(const tpc_link_search& find, const tpc_ends& ends, uint32_t own, uint32_t k)
    {
        const tpc_segment_end& from = ends[own];
        // Only a particle that turns in the TPC comes back through its inner side.
        if (own % 2u == 0u && k % 2u == 0u && square(from.curvature) < find.min_curvature2) return;
        // Ends of turns have long ways, on which other tracks are as near: they stay in time.
        const bool out_of_time = own % 2u != k % 2u && is_out_of_time(from, ends[k]);
        const tpc_difference to = continuation(find.limits, from, ends[k], out_of_time);
        if (!(to.chi2 < find.max_chi2)) return;
        const float of_k = to.chi2 + (to.gap > 0.f ? to.gap * find.chi2_of_gap : 0.f);
        if ((of_k < score || (of_k == score && k < end)) && !find.clones.is_clone(k / 2u)) {
            score = of_k;
            end = k;
        }
    }
};

}  // namespace hlt

HLT_KERNEL(tpc_link_segments)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x), first = p.tpc_tracks.first(event);
    const uint32_t* const begins = p.tpc_tracks.bin_begins + event * (hlt::tpc_segment_bins + 1u);
    const hlt::tpc_ends ends{p.tpc_tracks.inner + first, p.tpc_tracks.outer + first};
    const uint32_t* const sorted = p.tpc_tracks.sorted + first;
    const hlt::tpc_near_ends near = hlt::near_ends_of(p, first);
    const hlt::tpc_link_search find = hlt::link_search_of(p, first);
    const hlt::tpc_continuation& limits = find.limits;
    const uint32_t n = p.tpc_tracks.count[event], part = blockIdx.x - event * hlt::tpc_merging_parts;
    const uint32_t end = n * (part + 1u) / hlt::tpc_merging_parts;
    for (uint32_t place = n * part / hlt::tpc_merging_parts + threadIdx.x; place < end; place += blockDim.x) {
        const uint32_t i = sorted[place];
        hlt::tpc_best_end best[2];
        if (!find.clones.is_clone(i)) {
            hlt::for_near_bins(begins, p.tpc_tracks.bin[first + i], [&](uint32_t first_near, uint32_t end_near) {
                for (uint32_t at = 2u * first_near; at < 2u * end_near; ++at)
                    for (uint32_t own = 0; own < 2u; ++own) {
                        const hlt::tpc_segment_end& from = ends[2u * i + own];
                        if (near.differs_too_much(limits, from, at, p.max_chi2)) continue;
                        const uint32_t k = 2u * sorted[at / 2u] + at % 2u;
                        if (k / 2u != i && !hlt::misses(limits, from, ends[k], p.max_chi2))
                            best[own].take(find, ends, 2u * i + own, k);
                    }
            });
        }
        p.tpc_tracks.best_end[2u * (first + i)] = best[0].end;
        p.tpc_tracks.best_end[2u * (first + i) + 1u] = best[1].end;
    }
}
