// Seeding: triplets of unused hits in three neighbouring module pairs, at most one for every middle hit.
//
// The first two hits must be near in phi: of the hits downstream the max_partners nearest are tried. Of all lines
// through a middle hit the one with the closest third hit wins.
#pragma once

#include "lhcb/velo/tracking/triplet_search.cuh"

namespace hlt {

/// Put the unused ones of the n hits of the pair downstream, which `unused` lists, where partners are looked for.
/// Returns how many there are.
__device__ uint32_t gather_downstream(triplet_search& search, triplet_scratch& scratch,
                                      const event_column<uint16_t>& unused, uint32_t n)
{
    constexpr uint32_t half = max_partners / 2u;
    const downstream_hits& to = search.downstream;
    const velo_hits& hits = search.hits;
    return list_unused(
        search, scratch, n, [&](uint32_t i) -> uint32_t { return unused[i]; },
        [&](uint32_t i, uint32_t hit) {
            to.hit[half + i] = static_cast<uint16_t>(hit);
#if !HLT_ON_GPU
            to.x[half + i] = hits.x[hit];
            to.y[half + i] = hits.y[hit];
            to.z[half + i] = hits.z[hit];
            to.phi[half + i] = hits.phi[hit];
#endif
        });
}

/// Where there are no more hits downstream than max_partners, all are tried: the first place, behind which there are
/// max_partners, in any event.
__device__ uint32_t first_of_few(uint32_t n) { return min_of(n, max_partners / 2u); }

/// Fill the places before and behind the n hits downstream: with those from the other end, or, where all are tried,
/// with what is nobody's partner.
__device__ void fill_downstream(triplet_search& search, uint32_t n)
{
    constexpr uint32_t half = max_partners / 2u;
    const downstream_hits& hits = search.downstream;
    for (uint32_t i = threadIdx.x; i < max_partners; i += blockDim.x) {
        if (n > max_partners) {
            const uint32_t to = i < half ? i : n + i, from = i < half ? n + i : i;
            hits.hit[to] = hits.hit[from];
#if !HLT_ON_GPU
            hits.x[to] = hits.x[from];
            hits.y[to] = hits.y[from];
            hits.z[to] = hits.z[from];
            hits.phi[to] = hits.phi[from];
#endif
        } else {
            const uint32_t place = first_of_few(n) + i;
            if (place >= half && place < half + n) continue;
#if HLT_ON_GPU
            hits.hit[place] = static_cast<uint16_t>(hits.nobody);
#else
            hits.x[place] = not_a_number();
#endif
        }
    }
}

#if HLT_ON_GPU

/// Whether the two hits may be on a track.
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

/// List the lines of those of the n middle hits that are the warp's. Returns how many.
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

#else

/// Which of the max_partners hits downstream from `first` on may be on a track with the middle hit; bit k stands for
/// first + k.
inline uint32_t choose_partners(const triplet_search& search, uint32_t middle, uint32_t first)
{
    const float middle_x = search.hits.x[middle], middle_y = search.hits.y[middle], middle_z = search.hits.z[middle];
    const int32_t middle_phi = search.hits.phi[middle];
    const triplet_cuts& cuts = search.cuts;
    float8 x, y, z;
    uint8x32 phi;
    load8(x, &search.downstream.x[first]);
    load8(y, &search.downstream.y[first]);
    load8(z, &search.downstream.z[first]);
    load8(phi, &search.downstream.phi[first]);
    const uint8x32 shifted = (phi - static_cast<uint32_t>(middle_phi)) << 16;
    int8x32 turn;
    load8(turn, &shifted);
    turn >>= 16;
    const int8x32 distance = turn < 0 ? -turn : turn;
    const float8 dx = x - middle_x, dy = y - middle_y, dz = z - middle_z;
    const float8 d2 = dx * dx + dy * dy, dz2 = dz * dz;
    const int8x32 displaced = distance > cuts.phi_tolerance;
    const int8x32 flat =
        (displaced & (d2 <= cuts.max_displaced_slope2 * dz2)) | (~displaced & (d2 <= cuts.max_slope2 * dz2));
    return bits_of((distance <= cuts.displaced_phi_tolerance) & flat);
}

/// First of the n hits downstream whose phi is not below `phi`, searched from `nearest` on.
inline uint32_t find_nearest(const triplet_search& search, uint32_t nearest, uint32_t n, int32_t phi)
{
    const int32_t* downstream_phi = &search.downstream.phi[max_partners / 2u];
    for (;;) {
        int8x32 eight;
        load8(eight, downstream_phi + nearest);
        const uint32_t left = n - nearest;
        const uint32_t not_below = bits_of(eight >= phi) | (left < 8u ? 0x100u >> (8u - left) : 0x100u);
        const uint32_t passed = static_cast<uint32_t>(__ffs(static_cast<int>(not_below))) - 1u;
        nearest += passed;
        if (passed < 8u) return nearest;
    }
}

/// List the lines of a tile of n middle hits. Returns how many.
inline uint32_t list_lines(const triplet_search& search, triplet_scratch& scratch, const event_column<uint16_t>& middle,
                           uint32_t n, uint32_t n_downstream, uint32_t& nearest)
{
    const bool few = n_downstream <= max_partners;
    uint32_t n_lines = 0;
    for (uint32_t m = 0; m < n; ++m) {
        const uint32_t hit = middle[m];
        if (!few) nearest = find_nearest(search, nearest, n_downstream, search.hits.phi[hit]);
        const uint32_t first = few ? first_of_few(n_downstream) : nearest;
        const uint32_t chosen = choose_partners(search, hit, first);
        scratch.places[m] = first | hit << 16;
        scratch.best[m] = no_rank;
        for (uint32_t k = 0; k < max_partners; ++k)  // those behind the chosen ones are overwritten by the next
            scratch.lines[n_lines + k] = static_cast<uint8_t>(m * max_partners + eight_places.places[chosen][k]);
        n_lines += static_cast<uint32_t>(__popc(chosen));
    }
    return n_lines;
}

#endif

/// Find the third hits of the warp's n lines, and of the lines of each middle hit the best. The third hit of that waits
/// where the middle hit's open track would be if all had one.
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
#if HLT_ON_GPU
    const uint32_t tile = blockDim.x;
#else
    constexpr uint32_t tile = middle_tile;
#endif
    uint32_t nearest = 0;  // first hit downstream whose phi is not below that of the middle hit; only rises
    for (uint32_t base = 0; base < n_middle; base += tile) {
        const uint32_t n = min_of(n_middle - base, tile);
        const uint32_t n_lines = list_lines(search, scratch, middle.from(base), n, n_downstream, nearest);
        find_third_hits(search, scratch, pair, n_lines);
        make_seeds(search, scratch, n);
    }
    block_barrier();
}

}  // namespace hlt
