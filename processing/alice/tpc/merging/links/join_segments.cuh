// The segments of each merged track.
//
// In:  the links of ends, clones, turns. Out: tpc_merged_tracks.first_segment, size and run; their number;
// tpc_merged_segments.segment in the order of flight, a clone behind its segment. A chain begins at its free end on the
// inner side; of two such ends at that with the smaller |z|, of equal ones at that of the first segment; a ring at its
// first segment. A chain of more than tpc_max_segments segments is not merged: note long_chain. Two chains, each of
// which is the best turn of the other, are one merged track, if it has at most tpc_max_segments segments: that with the
// better beginning comes first, and only its first way counts as the first way of the track. One block per event;
// threads stride over the segments, first to count, then to write, so that merged tracks come in the order of their
// first segment in the list. Bounds: as many places as segments; each belongs to one merged track.
#pragma once

#include "alice/tpc/generated/tpc_flags.h"
#include "alice/tpc/merging/links/generated/tpc_join_segments.h"
#include "alice/tpc/merging/links/links.cuh"
#include "alice/tpc/merging/segments/segment_end.cuh"

namespace hlt {

/// Whether the free end `b` is a better beginning than `a`.
__device__ bool begins_better(const tpc_ends& ends, uint32_t a, uint32_t b)
{
    if (a % 2u != b % 2u) return b % 2u == 0u;
    const float za = ends[a].z < 0.f ? -ends[a].z : ends[a].z, zb = ends[b].z < 0.f ? -ends[b].z : ends[b].z;
    return zb < za || (!(za < zb) && b < a);
}

/// Where the merged track of a segment begins: a free end, or the inner end of the first segment of a ring. `n`: its
/// segments; 0 if the merged track is that of another segment. A clone has none.
struct tpc_beginning {
    uint32_t end, n;
    bool is_long;
};

__device__ tpc_beginning beginning_of(const tpc_chain& chain, const tpc_ends& ends, uint32_t i)
{
    if (chain.clones.is_clone(i)) return {0, 0, false};
    const tpc_way inwards = way_out(chain, 2u * i), outwards = way_out(chain, 2u * i + 1u);
    const uint32_t own = chain.size(i), n = inwards.is_ring ? inwards.n + own : inwards.n + own + outwards.n;
    if (n > tpc_max_segments) return {2u * i, own, true};
    if (inwards.is_ring) return {2u * i, inwards.smallest == i ? n : 0u, false};
    if (min_of(inwards.smallest, outwards.smallest) != i) return {0, 0, false};
    return {begins_better(ends, inwards.end, outwards.end) ? outwards.end : inwards.end, n, false};
}

/// The two chains of a merged track; `second.n` is 0 for a single chain. `first.n` is 0 if the track begins with
/// another chain than that of segment i.
struct tpc_pair {
    tpc_beginning first, second;
};

__device__ tpc_pair pair_of(const tpc_chain& chain, const tpc_turns& turns, const tpc_ends& ends, uint32_t i)
{
    constexpr tpc_beginning none{0, 0, false};
    const tpc_beginning own = beginning_of(chain, ends, i);
    if (own.n == 0u || own.is_long) return {own, none};
    const uint32_t partner = turns.partner_of(chain, i);
    if (partner == tpc_no_end) return {own, none};
    const tpc_beginning other = beginning_of(chain, ends, partner);
    if (own.n + other.n > tpc_max_segments) return {own, none};
    if (begins_better(ends, own.end, other.end)) return {none, none};
    return {own, other};
}

/// Writes the segments of a chain in the order of flight, and returns those of its first way.
__device__ uint32_t write_chain(const tpc_chain& chain, const tpc_ends& ends, const tpc_beginning& from,
                                uint32_t* segments)
{
    uint32_t written = 0, run = 0, into = from.end;
    bool same_way = true;
    while (written < from.n) {
        const uint32_t segment = into / 2u, clone = chain.clones.clone_of(segment);
        segments[written++] = segment;
        if (clone != tpc_no_end) segments[written++] = clone;
        if (same_way) run = written;
        if (from.is_long) break;
        const uint32_t next = chain.link(into ^ 1u);
        if (next == tpc_no_end) break;
        // The run ends where the particle turns, from one outer end to another, or from one inner end to another; and
        // at the central electrode out of time, where z would jump in the fit.
        same_way = same_way && next % 2u == into % 2u && !is_out_of_time(ends[into ^ 1u], ends[next]);
        into = next;
    }
    return run;
}

}  // namespace hlt

HLT_KERNEL(tpc_join_segments)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t is_long;
    if (threadIdx.x == 0) is_long = 0;
    hlt::block_barrier();
    const uint32_t n = p.tpc_tracks.count[event], first = p.tpc_tracks.first(event);
    const uint32_t first_merged = p.tpc_merged_tracks.first(event);
    uint32_t* const segments = p.tpc_merged_segments.segment + p.tpc_merged_segments.first(event);
    const hlt::tpc_ends ends{p.tpc_tracks.inner + first, p.tpc_tracks.outer + first};
    const hlt::tpc_chain chain{p.tpc_tracks.best_end + 2u * first,
                               {p.tpc_tracks.longer + first, p.tpc_tracks.shorter + first}};
    const hlt::tpc_turns turns{p.tpc_tracks.turn_score + first, p.tpc_tracks.turn_chain + first};
    uint32_t n_merged = 0, n_segments = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        hlt::tpc_pair found{};
        if (i < n) found = hlt::pair_of(chain, turns, ends, i);
        if (found.first.is_long) atomicOr(&is_long, 1u);
        const uint32_t size = found.first.n + found.second.n;
        uint32_t more, more_segments;
        const uint32_t merged = first_merged + n_merged + hlt::block_exclusive_count(size != 0u, scratch, more);
        const uint32_t place = n_segments + hlt::block_exclusive_sum(size, scratch, more_segments);
        n_merged += more;
        n_segments += more_segments;
        if (size == 0u) continue;
        p.tpc_merged_tracks.first_segment[merged] = place;
        p.tpc_merged_tracks.size[merged] = static_cast<uint16_t>(size);
        p.tpc_merged_tracks.run[merged] =
            static_cast<uint16_t>(hlt::write_chain(chain, ends, found.first, segments + place));
        hlt::write_chain(chain, ends, found.second, segments + place + found.first.n);
    }
    if (threadIdx.x != 0) return;
    p.tpc_merged_tracks.count[event] = n_merged;
    p.tpc_merged_segments.count[event] = n_segments;
    if (is_long != 0u) p.events.flags[event] |= uint32_t{hlt::long_chain};
}
