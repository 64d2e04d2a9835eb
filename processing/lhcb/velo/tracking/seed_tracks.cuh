// Seeding: triplets of unused hits in three neighbouring module pairs, at most one for every middle hit.
//
// The first two hits must be near in phi: the max_partners nearest hits downstream are tried. Of the lines through a
// middle hit, the one with the closest third hit becomes the triplet.
#pragma once

#include "lhcb/velo/tracking/triplet_search.cuh"

namespace hlt {

/// Copy those of the n hits downstream in `unused` that are still unused to the list of partners. Returns their number.
__device__ uint32_t gather_downstream(triplet_search& search, triplet_scratch& scratch,
                                      const event_column<uint16_t>& unused, uint32_t n)
{
    constexpr uint32_t half = max_partners / 2u;
    const downstream_hits& to = search.downstream;
    return list_unused(
        search, scratch, n, [&](uint32_t i) -> uint32_t { return unused[i]; },
        [&](uint32_t i, uint32_t hit) { to.hit[half + i] = static_cast<uint16_t>(hit); });
}

/// First place of a window of max_partners places that covers all n hits downstream. If at most max_partners hits lie
/// downstream, all are tried.
__device__ uint32_t first_of_few(uint32_t n) { return min_of(n, max_partners / 2u); }

/// Fill the places before and behind the n hits downstream: with hits from the other end, or, if all hits are tried,
/// with the point through which no line goes.
__device__ void fill_downstream(triplet_search& search, uint32_t n)
{
    constexpr uint32_t half = max_partners / 2u;
    const downstream_hits& hits = search.downstream;
    for (uint32_t i = threadIdx.x; i < max_partners; i += blockDim.x) {
        if (n > max_partners) {
            const uint32_t to = i < half ? i : n + i, from = i < half ? n + i : i;
            hits.hit[to] = hits.hit[from];
        } else {
            const uint32_t place = first_of_few(n) + i;
            if (place >= half && place < half + n) continue;
            hits.hit[place] = static_cast<uint16_t>(hits.no_point);
        }
    }
}

/// True if the two hits may be on one track.
__device__ bool are_partners(const triplet_cuts& cuts, const hit_point& downstream, const hit_point& middle)
{
    const int32_t turn =
        static_cast<int16_t>(__float_as_uint(downstream.phi_and_hit) - __float_as_uint(middle.phi_and_hit));
    const int32_t distance = turn < 0 ? -turn : turn;
    const float dx = downstream.x - middle.x, dy = downstream.y - middle.y, dz = downstream.z - middle.z;
    const float max2 = distance > cuts.phi_tolerance ? cuts.max_displaced_slope2 : cuts.max_slope2;
    return (distance <= cuts.displaced_phi_tolerance) & (dx * dx + dy * dy <= max2 * (dz * dz));  // no branch
}

/// First of the n hits downstream whose phi is not below `phi`, searched from `nearest` on.
__device__ uint32_t find_nearest(const triplet_search& search, uint32_t nearest, uint32_t n, int32_t phi)
{
    while (nearest < n) {
        const uint32_t middle = (nearest + n) / 2u;
        if (search.downstream[max_partners / 2u + middle].phi() < phi)
            nearest = middle + 1u;
        else
            n = middle;
    }
    return nearest;
}

/// List the lines of the warp's part of the n middle hits. Returns the number of lines.
__device__ uint32_t list_lines(const triplet_search& search, triplet_scratch& scratch,
                               const event_column<uint16_t>& middle, uint32_t n, uint32_t n_downstream,
                               uint32_t& nearest)
{
    const uint32_t hit = middle[min_of(threadIdx.x, n - 1u)];
    hit_point point = search.hits.points[hit];
    const bool few = n_downstream <= max_partners;
    if (!few) nearest = find_nearest(search, nearest, n_downstream, point.phi());
    const uint32_t first = few ? first_of_few(n_downstream) : nearest;
    scratch.places[threadIdx.x] = first | hit << 16;
    scratch.best[threadIdx.x] = no_rank;
    if (threadIdx.x >= n) point.x = not_a_number();

    const uint32_t first_line = threadIdx.x / warp_size * warp_size * max_partners;
    uint32_t end = first_line;
    uint8_t line = static_cast<uint8_t>(threadIdx.x % warp_size * max_partners);
#pragma unroll 4  // more loads at once would cost registers
    for (uint32_t k = 0; k < max_partners; ++k, ++line) {
        const bool is_chosen = are_partners(search.cuts, search.downstream[first + k], point);
        const uint32_t chosen = __ballot_sync(warp_lanes(), is_chosen);
        if (is_chosen) scratch.lines[end + static_cast<uint32_t>(__popc(chosen & lanes_before()))] = line;
        end += static_cast<uint32_t>(__popc(chosen));
    }
    __syncwarp(warp_lanes());
    return end - first_line;
}

/// Find the third hits of the warp's n lines, and the best line of each middle hit. Its third hit is stored at the
/// place of the open track that the middle hit would have if every middle hit had one.
__device__ void find_third_hits(triplet_search& search, triplet_scratch& scratch, uint32_t pair, uint32_t n)
{
    const velo_hits& hits = search.hits;
    const line_target where(hits, pair - 1u, search.cuts.max_seed_scatter, search.cuts.max_phi_tolerance);
    const float step = search.module_z[2u * pair - 2u] - search.module_z[2u * pair];
    const uint32_t first_middle = threadIdx.x / warp_size * warp_size;
    const uint8_t* lines = scratch.lines + first_middle * max_partners;
    const auto line_at = [&](uint32_t i) -> two_hits {
        const uint32_t places = scratch.places[first_middle + lines[i] / max_partners];
        return {search.downstream[(places & 0xffffu) + lines[i] % max_partners], hits[places >> 16], step};
    };
    const auto take = [&](uint32_t i, const closest_hit& closest) {
        const bool found = i < n && closest.hit != no_hit;
        const uint32_t line = found ? lines[i] : 0u, m = first_middle + line / max_partners;
        const uint32_t rank = closest.scatter_bits | line % max_partners;
        if (found) atomicMin(&scratch.best[m], rank);
        __syncwarp(warp_lanes());
        if (found && scratch.best[m] == rank) search.open[search.n_open + m].last_two = closest.hit;
        __syncwarp(warp_lanes());  // before the next lines
    };
    follow_lines<true>(hits, where, {0, n_warp_lanes()}, n, line_at, take);
}

/// The best line of each of n middle hits becomes a seed.
__device__ void make_seeds(triplet_search& search, triplet_scratch& scratch, uint32_t n)
{
    const uint32_t first_open = search.n_open;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t m = base + threadIdx.x;
        const uint32_t best = m < n ? scratch.best[m] : no_rank;
        const bool found = best != no_rank;
        const uint32_t third = found ? search.open[first_open + m].last_two : 0u;
        uint32_t n_found;
        const uint32_t at = block_exclusive_count(found, scratch.sum, n_found);
        if (found) {
            const uint32_t places = scratch.places[m], hit = places >> 16;
            const uint32_t first_hit = search.downstream.hit[(places & 0xffffu) + best % max_partners];
            const event_column<uint16_t> seed = search.seed_hits.from(4u * (search.n_seeds + at));
            seed[0] = static_cast<uint16_t>(first_hit);
            seed[1] = static_cast<uint16_t>(hit);
            seed[2] = static_cast<uint16_t>(third);
            seed[3] = seed_left;
            search.open[search.n_open + at] = {hit | third << 16, search.n_seeds + at};
        }
        search.n_seeds += n_found;
        search.n_open += n_found;
    }
}

/// Make triplets of unused hits with the middle one in `pair`.
__device__ void seed_tracks(triplet_search& search, triplet_scratch& scratch, uint32_t pair, uint32_t n_downstream,
                            uint32_t n_middle)
{
    const event_column<uint16_t> middle = search.unused.from(search.hits.module_pair_offset[pair]);
    uint32_t nearest = 0;  // first hit downstream whose phi is not below that of the middle hit; only rises
    for (uint32_t base = 0; base < n_middle; base += blockDim.x) {
        const uint32_t n = min_of(n_middle - base, static_cast<uint32_t>(blockDim.x));
        const uint32_t n_lines = list_lines(search, scratch, middle.from(base), n, n_downstream, nearest);
        find_third_hits(search, scratch, pair, n_lines);
        make_seeds(search, scratch, n);
    }
    block_barrier();
}

}  // namespace hlt
