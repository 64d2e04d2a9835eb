// Segments that lie between two linked ends are inserted into the chain.
//
// In:  ends, clones and links of the segments, free ends by cells. Out: tpc_tracks.best_end of both ends of the link
// and of the segment; scratch memory insertion, insertion_key, claimed_key, claimed_by. Of three segments of a
// particle, the first may be linked to the third: their ends are known well, where the short one between them has a
// wrong curvature. So the ends of each link are compared by place with segments that have no link at either end. Both
// ends of such a segment must lie near the way out of one end of the link, within piece_distance, piece_z and
// piece_slope, behind this end and before the other one, with max_overlap. The smallest sum of squares decides, in
// steps of 2^-28; of equal ones the first end. A link takes one segment, and a segment has one link. An end with more
// than tpc_max_free_ends in the cubes around it takes none: note crowded_ends. One block per event; threads stride over
// the ends. Bounds: those of the tracks.
#pragma once

#include "alice/tpc/generated/tpc_flags.h"
#include "alice/tpc/merging/links/by_place.cuh"
#include "alice/tpc/merging/links/generated/tpc_insert_segments.h"
#include "alice/tpc/merging/links/links.cuh"
#include "alice/tpc/merging/links/near_cells.cuh"

namespace hlt {

/// Units of a sum of squares, which is below 4: as an integer, threads can find the smallest one together.
constexpr float tpc_insertion_unit = 1.f / (1u << 28u);

/// A segment for a link, by the end that it turns to the end of the link.
struct tpc_insertion {
    uint32_t end, key;
};

/// The links of an event, and the constants of the search.
struct tpc_insertion_search {
    tpc_piece_limits limits;
    tpc_ends ends;
    tpc_chain chain;
    const uint32_t* begins;
    const tpc_free_end* free;

    __device__ bool is_alone(uint32_t segment) const
    {
        return chain.link(2u * segment) == tpc_no_end && chain.link(2u * segment + 1u) == tpc_no_end;
    }
    /// The key of a segment between end a and the end behind it, `gap` cm away; tpc_no_end if it is not there.
    __device__ uint32_t key(uint32_t a, float gap, uint32_t b) const
    {
        const tpc_place_on_way near = place_on_way(limits, ends[a], ends[b], -1.f);
        if (!(near.distance2 < tpc_no_continuation)) return tpc_no_end;
        const tpc_place_on_way far = place_on_way(limits, ends[a], ends[b ^ 1u], 1.f);
        if (!(far.distance2 < tpc_no_continuation) || !(far.gap < gap + limits.overlap)) return tpc_no_end;
        return static_cast<uint32_t>((near.distance2 + far.distance2) / tpc_insertion_unit);
    }
    /// The best segment behind end a of a link; `crowded`: too many free ends are near it.
    __device__ tpc_insertion best(uint32_t a, bool& crowded) const
    {
        tpc_insertion found{tpc_no_end, tpc_no_end};
        const uint32_t other = chain.link(a);
        const tpc_segment_end& from = ends[a];
        if (other == tpc_no_end || !is_in_a_cell(from)) return found;
        const float gap = way_to(from, ends[other]);
        if (!(gap > 0.f)) return found;
        crowded = near_free_ends(begins, from) > tpc_max_free_ends;
        if (crowded) return found;
        for_near_cells(begins, from, [&](uint32_t first, uint32_t last) {
            for (uint32_t at = first; at < last; ++at) {
                const uint32_t b = free[at].end;
                if (!are_near(from, free[at]) || !is_alone(b / 2u)) continue;
                const uint32_t of = key(a, gap, b);
                if (of < found.key || (of == found.key && of != tpc_no_end && b < found.end)) found = {b, of};
            }
        });
        return found;
    }
    /// cm of the way out of an end to the place next to another end, of less than half a turn.
    __device__ float way_to(const tpc_segment_end& a, const tpc_segment_end& b) const
    {
        const float k = a.curvature, dx = b.x - a.x, dy = b.y - a.y;
        const float t = dx * a.along_x + dy * a.along_y, w = dy * a.along_x - dx * a.along_y;
        return angle_at(1.f - k * w, k * t) / k;
    }
};

}  // namespace hlt

HLT_KERNEL(tpc_insert_segments)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t is_crowded;
    if (threadIdx.x == 0) is_crowded = 0;
    const uint32_t first = p.tpc_tracks.first(event), n = p.tpc_tracks.count[event];
    uint32_t* const best_end = p.tpc_tracks.best_end + 2u * first;
    uint32_t* const insertion = p.tpc_tracks.insertion + 2u * first;
    uint32_t* const key = p.tpc_tracks.insertion_key + 2u * first;
    uint32_t* const claimed_key = p.tpc_tracks.claimed_key + first;
    uint32_t* const claimed_by = p.tpc_tracks.claimed_by + first;
    const hlt::tpc_insertion_search find{{p.piece_distance, p.piece_z, p.piece_slope, p.max_overlap},
                                         {p.tpc_tracks.inner + first, p.tpc_tracks.outer + first},
                                         {best_end, {p.tpc_tracks.longer + first, p.tpc_tracks.shorter + first}},
                                         p.tpc_tracks.cell_begins + event * (hlt::tpc_free_cells + 1u),
                                         p.tpc_tracks.free_end + 2u * first};
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) claimed_key[i] = claimed_by[i] = hlt::tpc_no_end;
    for (uint32_t a = threadIdx.x; a < 2u * n; a += blockDim.x) {
        bool crowded = false;
        const hlt::tpc_insertion found = find.best(a, crowded);
        insertion[a] = found.end;
        key[a] = found.key;
        if (crowded) atomicOr(&is_crowded, 1u);
    }
    hlt::block_barrier();
    // The better one of both ends of a link asks for its segment.
    const auto asks = [&](uint32_t a) {
        if (insertion[a] == hlt::tpc_no_end) return false;
        const uint32_t other = find.chain.link(a);
        return key[a] < key[other] || (key[a] == key[other] && a < other);
    };
    for (uint32_t a = threadIdx.x; a < 2u * n; a += blockDim.x)
        if (asks(a)) atomicMin(&claimed_key[insertion[a] / 2u], key[a]);
    hlt::block_barrier();
    for (uint32_t a = threadIdx.x; a < 2u * n; a += blockDim.x)
        if (asks(a) && claimed_key[insertion[a] / 2u] == key[a]) atomicMin(&claimed_by[insertion[a] / 2u], a);
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const uint32_t a = claimed_by[i];
        if (a == hlt::tpc_no_end) continue;
        const uint32_t other = best_end[a], near = insertion[a];
        best_end[a] = near;
        best_end[near] = a;
        best_end[near ^ 1u] = other;
        best_end[other] = near ^ 1u;
    }
    if (threadIdx.x == 0 && is_crowded != 0u) p.events.flags[event] |= uint32_t{hlt::crowded_ends};
}
