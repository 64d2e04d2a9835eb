// Links of segments that end beside each other, whatever their bins.
//
// In:  ends of the segments, free ends by cells. Out: tpc_tracks.best_end of free ends. A segment that cuts the corner
// of a slice has some ten clusters. Its curvature, and so the axis of its helix, is too uncertain for the bins of
// tpc_link_segments, but the next segment begins a few cm behind its end. So each free end is compared with those up to
// 19.5 cm away; chi2 must be below max_chi2 in both directions. The smallest sum of both chi2, and of chi2 for the
// length of both ways, decides; of equal ones the first end. A segment at the outermost place of a turn has clusters of
// both legs, which bend it by many errors. So a pair without such a chi2 is compared by place: if the curvature of one
// is known piece_variance times better, both ends of the other one must lie near its helix, within piece_distance,
// piece_z and piece_slope. Pairs by chi2 come first. As before, a link is mutual. An end with more than
// tpc_max_free_ends others in the cubes around it stays free: note crowded_ends. Blocks of an event share its free
// ends, in the order of cubes; threads stride over them. Bounds: those of the tracks.
#pragma once

#include "alice/tpc/generated/tpc_flags.h"
#include "alice/tpc/merging/links/by_place.cuh"
#include "alice/tpc/merging/links/generated/tpc_link_free_ends.h"
#include "alice/tpc/merging/links/links.cuh"
#include "alice/tpc/merging/links/near_cells.cuh"
#include "alice/tpc/merging/segments/near_ends.cuh"
#include "framework/device/between_blocks.cuh"

namespace hlt {

/// More than the score of any pair by chi2: with the given constants, that is below 2 * 40 + 2 * 400 = 880.
constexpr float tpc_score_by_place = 1000.f;

/// Ends that may be linked here, and the constants of the search.
struct tpc_free_search {
    tpc_continuation limits;
    tpc_piece_limits piece_limits;
    float piece_variance;  // of the curvature of a piece over that of the helix, at least
    float max_chi2, chi2_of_gap, min_curvature2;
    tpc_ends ends;

    /// The score by place of the way from end a to end b of a piece; tpc_no_continuation or more if it is no link.
    __device__ float score_by_place(uint32_t a, uint32_t b) const
    {
        const float near = place_on_way(piece_limits, ends[a], ends[b], -1.f).distance2;
        return tpc_score_by_place + (near + place_on_way(piece_limits, ends[a], ends[b ^ 1u], 1.f).distance2);
    }
    /// Sum of chi2 and of chi2 for the ways of a pair; tpc_no_continuation or more if it is no link.
    __device__ float score(const tpc_free_end& a, const tpc_free_end& b) const
    {
        if (a.end / 2u == b.end / 2u) return tpc_no_continuation;
        if (!are_near(a, b)) return tpc_no_continuation;
        const tpc_segment_end &from = ends[a.end], &to = ends[b.end];
        // Only a particle that turns in the TPC comes back through its inner side.
        if (a.end % 2u == 0u && b.end % 2u == 0u &&
            (square(from.curvature) < min_curvature2 || square(to.curvature) < min_curvature2))
            return tpc_no_continuation;
        const float by_chi2 = score_of_both_ways(limits, from, to, max_chi2, chi2_of_gap);
        if (by_chi2 < tpc_no_continuation) return by_chi2;
        if (from.kk * piece_variance < to.kk) return score_by_place(a.end, b.end);
        if (to.kk * piece_variance < from.kk) return score_by_place(b.end, a.end);
        return tpc_no_continuation;
    }
    /// The best free end for an end; tpc_no_end without one, or if there are too many: `crowded`.
    __device__ uint32_t best(const uint32_t* begins, const tpc_free_end* free, const tpc_free_end& own,
                             bool& crowded) const
    {
        crowded = near_free_ends(begins, own) > tpc_max_free_ends + 1u;
        if (crowded) return tpc_no_end;
        float least = tpc_no_continuation;
        uint32_t found = tpc_no_end;
        for_near_cells(begins, own, [&](uint32_t first, uint32_t last) {
            for (uint32_t at = first; at < last; ++at) {
                const float of = score(own, free[at]);
                if (of < least || (of == least && of < tpc_no_continuation && free[at].end < found)) {
                    least = of;
                    found = free[at].end;
                }
            }
        });
        return found;
    }
};

}  // namespace hlt

HLT_KERNEL(tpc_link_free_ends)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x), part = blockIdx.x - event * hlt::tpc_merging_parts;
    const uint32_t first = p.tpc_tracks.first(event);
    const uint32_t* const begins = p.tpc_tracks.cell_begins + event * (hlt::tpc_free_cells + 1u);
    uint32_t* const best_end = p.tpc_tracks.best_end + 2u * first;
    const hlt::tpc_free_end* const free = p.tpc_tracks.free_end + 2u * first;
    const hlt::tpc_free_search find{{p.distance, p.angle, p.bend, p.z, p.slope, p.max_gap, p.max_overlap},
                                    {p.piece_distance, p.piece_z, p.piece_slope, p.max_overlap},
                                    p.piece_variance,
                                    p.max_chi2,
                                    p.chi2_of_gap,
                                    1.f / (p.max_turning_radius * p.max_turning_radius),
                                    {p.tpc_tracks.inner + first, p.tpc_tracks.outer + first}};
    const uint32_t n_free = begins[hlt::tpc_free_cells];
    const uint32_t end = n_free * (part + 1u) / hlt::tpc_merging_parts;
    bool is_crowded = false;
    for (uint32_t i = n_free * part / hlt::tpc_merging_parts + threadIdx.x; i < end; i += blockDim.x) {
        bool crowded;
        best_end[free[i].end] = find.best(begins, free, free[i], crowded);
        is_crowded = is_crowded || crowded;
    }
    if (is_crowded) hlt::set_bits_between_blocks(&p.events.flags[event], uint32_t{hlt::crowded_ends});
}
