// Chains with more segments than a track can have are cut at their weakest links.
//
// In:  ends, clones and links of the segments. Out: tpc_tracks.best_end without the links that are cut; scratch memory
// weakest_link. One wrong link between two soft particles makes a chain of more than tpc_max_segments segments, which
// tpc_join_segments would leave as single segments. The weakest link has the largest sum of chi2, and of chi2 for the
// length of the way, of both directions; of equal ones that with the smallest end. A part that is still too long is cut
// in the next round, of at most tpc_cut_rounds. A chain of more than tpc_max_cut_segments segments stays as it is, so
// the work is bounded. One block per event; threads stride over the segments, and the first segment of a chain finds
// its weakest link. All are found before one is cut, so the order of threads does not matter. Bounds: those of the
// tracks.
#pragma once

#include "alice/tpc/merging/links/generated/tpc_cut_chains.h"
#include "alice/tpc/merging/links/links.cuh"
#include "alice/tpc/merging/segments/segment_end.cuh"

namespace hlt {

constexpr uint32_t tpc_cut_rounds = 16;

struct tpc_chain_cutter {
    tpc_continuation limits;
    float chi2_of_gap;
    tpc_ends ends;
    tpc_chain chain;

    __device__ float weakness(uint32_t a, uint32_t b) const
    {
        const bool out_of_time = a % 2u != b % 2u && is_out_of_time(ends[a], ends[b]);
        const tpc_difference there = continuation(limits, ends[a], ends[b], out_of_time);
        const tpc_difference back = continuation(limits, ends[b], ends[a], out_of_time);
        return (there.chi2 + back.chi2) + chi2_of_gap * (max_of(there.gap, 0.f) + max_of(back.gap, 0.f));
    }
    /// Calls `visit(end, other)` for the links of the chain of segment i: first on the way out of its inner end, then
    /// of the outer one; a ring ends with the first way. Returns the segments of the chain, clones included; 0 for a
    /// chain that is not cut, and unless segment i is its first one.
    template <typename Visit>
    __device__ uint32_t for_links(uint32_t i, const Visit& visit) const
    {
        uint32_t n = chain.clones.is_clone(i) ? 0u : chain.size(i), end = 2u * i;
        bool outwards = false;
        while (n != 0u) {
            const uint32_t other = chain.link(end);
            if (other == tpc_no_end) {
                if (outwards) break;
                outwards = true;
                end = 2u * i + 1u;
                continue;
            }
            visit(end, other);
            if (other / 2u == i) break;
            n += chain.size(other / 2u);
            if (other / 2u < i || n > tpc_max_cut_segments) n = 0;
            end = other ^ 1u;
        }
        return n;
    }
    /// The smaller end of the weakest link of a chain that is too long, if segment i is its first one; else tpc_no_end.
    /// Only few chains are, so chi2 of the links is not computed before.
    __device__ uint32_t weakest(uint32_t i) const
    {
        if (for_links(i, [](uint32_t, uint32_t) {}) <= tpc_max_segments) return tpc_no_end;
        float worst = -1.f;
        uint32_t found = tpc_no_end;
        for_links(i, [&](uint32_t end, uint32_t other) {
            const uint32_t smaller = min_of(end, other);
            const float of = weakness(smaller, max_of(end, other));
            if (of > worst || (of == worst && smaller < found)) {
                worst = of;
                found = smaller;
            }
        });
        return found;
    }
};

}  // namespace hlt

HLT_KERNEL(tpc_cut_chains)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t n_cut;
    const uint32_t first = p.tpc_tracks.first(event), n = p.tpc_tracks.count[event];
    uint32_t* const best_end = p.tpc_tracks.best_end + 2u * first;
    uint32_t* const weakest = p.tpc_tracks.weakest_link + first;
    const hlt::tpc_chain_cutter cutter{{p.distance, p.angle, p.bend, p.z, p.slope, p.max_gap, p.max_overlap},
                                       p.chi2_of_gap,
                                       {p.tpc_tracks.inner + first, p.tpc_tracks.outer + first},
                                       {best_end, {p.tpc_tracks.longer + first, p.tpc_tracks.shorter + first}}};
    uint32_t cuts = 1;
    for (uint32_t round = 0; round < hlt::tpc_cut_rounds && cuts != 0u; ++round) {
        if (threadIdx.x == 0) n_cut = 0;
        hlt::block_barrier();
        for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
            weakest[i] = cutter.weakest(i);
            if (weakest[i] != hlt::tpc_no_end) atomicAdd(&n_cut, 1u);
        }
        hlt::block_barrier();
        cuts = n_cut;
        for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
            const uint32_t end = weakest[i];
            if (end == hlt::tpc_no_end) continue;
            best_end[best_end[end]] = hlt::tpc_no_end;
            best_end[end] = hlt::tpc_no_end;
        }
        hlt::block_barrier();
    }
}
