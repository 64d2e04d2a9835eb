// Track following: VELO tracks from hits sorted by phi, plane by plane, all candidates together
// (docs/physics/velo-tracking.md, "Following in vectors"; A. Hennequin et al., SIMD VELO 2020).
//
// A plane is a module pair, or one module of it (`plane_kind`). From the last plane to the first, two steps alternate:
// every candidate takes the closest hit of the next plane, and triplets of free hits make new candidates. A triplet has
// a middle hit, one of its seed_partners nearest hits in phi downstream, and the free hit upstream that is closest to
// the line through both. There is no window: each line is compared with all hits of a plane. So the work is the same
// for all candidates, and follow_tracks_cpu.h does it for sixteen at once. Here a thread has one candidate or one
// middle hit.
//
// In:  velo_hits.{x, y, z, phi, id}, velo_hits.module_pair_offset.
// Out: as velo_search_by_triplet: velo_tracks.{hits, hit_count, candidate_count}, velo_seeds.{hits, count},
//      velo_hits.used.
// Scratch: candidates and found [candidate], hit_bid [hit], planes: here the free hits downstream.
// One block per event. Only candidates write the marks of used hits and only seeding reads them, with a barrier between
// the two. Prefix sums number everything, so the result does not depend on the threads.
// Bounds: as velo_search_by_triplet. With modules as planes a hit may be in the middle of several triplets: an event
// with more triplets than hits, or more than max_velo_track_hits hits on a track, is flagged.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/velo/tracking/candidates.cuh"
#include "lhcb/velo/tracking/generated/velo_follow_tracks.h"

namespace hlt {

/// Find the closest hit of a plane for each candidate, and bid for it.
__device__ void look_for_next_hits(track_following& following, const hit_plane& plane)
{
    const uint32_t begin = following.first_hit(plane), end = following.end_of_hits(plane);
    for (uint32_t i = threadIdx.x; i < following.n_candidates; i += blockDim.x) {
        const uint32_t last_two = following.candidates[i].last_two;
        const uint32_t a = last_two & 0xffffu, b = last_two >> 16;
        const candidate_line line =
            line_of(following.x[a], following.y[a], following.z[a], following.x[b], following.y[b], following.z[b]);
        float closest = following.max_follow_scatter;
        uint32_t hit = nothing_found;
        for (uint32_t h = begin; h < end; ++h) {
            if (!following.is_in(plane, h)) continue;
            const float scatter = scatter_of(line, following.x[h], following.y[h], following.z[h]);
            if (scatter < closest) {
                closest = scatter;
                hit = h;
            }
        }
        note_found(following, i, hit, closest);
    }
}

/// List the free hits of a plane in order. Returns their number.
__device__ uint32_t list_free_hits(const track_following& following, const hit_plane& plane, uint32_t* list,
                                   uint32_t* scratch)
{
    const uint32_t end = following.end_of_hits(plane);
    uint32_t n = 0;
    for (uint32_t base = following.first_hit(plane); base < end; base += blockDim.x) {
        const uint32_t hit = base + threadIdx.x;
        const bool is_free = hit < end && following.used[hit] == 0u && following.is_in(plane, hit);
        uint32_t n_here;
        const uint32_t at = n + block_exclusive_count(is_free, scratch, n_here);
        if (is_free) list[at] = hit;
        n += n_here;
    }
    return n;
}

struct found_triplet {
    uint32_t first, third;
};

/// The best triplet of a middle hit with one of n free hits downstream, which are sorted by phi; the first one of equal
/// triplets. `third` is nothing_found if there is none.
__device__ found_triplet find_triplet(const track_following& following, const hit_plane& up, uint32_t middle,
                                      const uint32_t* downstream, uint32_t n)
{
    uint32_t nearest = 0, end = n;  // the first hit downstream whose phi is not below that of the middle hit
    while (nearest < end) {
        const uint32_t at = (nearest + end) / 2u;
        if (following.phi[downstream[at]] < following.phi[middle])
            nearest = at + 1u;
        else
            end = at;
    }
    const float bx = following.x[middle], by = following.y[middle], bz = following.z[middle];
    found_triplet best{0, nothing_found};
    float closest = following.max_seed_scatter;
    const uint32_t n_partners = following.n_partners, half = n_partners / 2u;
    uint32_t begin = 0;
    if (n > n_partners) {
        const auto distance = [&](uint32_t place) {
            return phi_distance(following.phi[downstream[place % n]], following.phi[middle]);
        };
        const int32_t start = first_partner(n_partners, distance(nearest + n - half - 1u), distance(nearest + half));
        begin = nearest + n + static_cast<uint32_t>(start);
    }
    for (uint32_t k = 0; k < min_of(n, n_partners); ++k) {
        const uint32_t place = (begin + k) % n;
        const uint32_t first = downstream[place];
        const float ax = following.x[first], ay = following.y[first], az = following.z[first];
        const int32_t turn = static_cast<int16_t>(following.phi[first] - following.phi[middle]);
        if (!following.are_partners(turn, ax - bx, ay - by, az - bz)) continue;
        const candidate_line line = line_of(ax, ay, az, bx, by, bz);
        for (uint32_t h = following.first_hit(up); h < following.end_of_hits(up); ++h) {
            if (following.used[h] != 0u || !following.is_in(up, h)) continue;
            const float scatter = scatter_of(line, following.x[h], following.y[h], following.z[h]);
            if (scatter < closest) {
                closest = scatter;
                best = {first, h};
            }
        }
    }
    return best;
}

/// Make triplets of free hits of a middle plane and the plane upstream of it.
__device__ void seed_candidates(track_following& following, const hit_plane& of_middle, const hit_plane& up,
                                const uint32_t* downstream, uint32_t n, uint32_t* scratch)
{
    const uint32_t end = following.end_of_hits(of_middle);
    for (uint32_t base = following.first_hit(of_middle); base < end; base += blockDim.x) {
        const uint32_t middle = base + threadIdx.x;
        found_triplet triplet{0, nothing_found};
        if (middle < end && following.used[middle] == 0u && following.is_in(of_middle, middle))
            triplet = find_triplet(following, up, middle, downstream, n);
        uint32_t n_here;
        const uint32_t at = block_exclusive_count(triplet.third != nothing_found, scratch, n_here);
        const uint32_t room = following.max_seeds - following.n_seeds;
        if (triplet.third != nothing_found && at < room)
            put_seed(following, following.n_seeds + at, following.n_candidates + at, triplet.first, middle,
                     triplet.third);
        if (n_here > room) following.overflow = true;
        following.n_seeds += min_of(n_here, room);
        following.n_candidates += min_of(n_here, room);
    }
}

}  // namespace hlt

HLT_KERNEL(velo_follow_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::track_following following = hlt::start_following(p, event);
    const uint32_t n_hits = p.velo_clusters.count[event];
    uint32_t* const downstream = reinterpret_cast<uint32_t*>(hlt::planes_of_event(p, event));

    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) {
        following.used[i] = 0;
        following.bid[i] = 0xffffffffu;
    }
    hlt::block_barrier();
    hlt::take_steps(
        following,
        [&](const hlt::hit_plane& up) {
            hlt::look_for_next_hits(following, up);
            hlt::block_barrier();
            hlt::extend_candidates(following, scratch);
            hlt::block_barrier();
        },
        [&](const hlt::hit_plane& down, const hlt::hit_plane& middle, const hlt::hit_plane& up) {
            const uint32_t n = hlt::list_free_hits(following, down, downstream, scratch);
            hlt::block_barrier();
            hlt::seed_candidates(following, middle, up, downstream, n, scratch);
            hlt::block_barrier();
        });
    if (threadIdx.x == 0) {
        p.velo_tracks.candidate_count[event] = following.n_tracks;
        p.velo_seeds.count[event] = following.n_seeds;
    }
    if (following.overflow) atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::overflow));
}
