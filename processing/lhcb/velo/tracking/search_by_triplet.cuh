// Search by triplet: VELO tracks from hits sorted by phi (docs/physics/velo-tracking.md).
//
// From the last module pair to the first, two steps alternate: *forwarding* (forward_tracks.cuh) extends every open
// track into the next pair and marks the hits that it takes as used; *seeding* (seed_tracks.cuh) makes triplets of hits
// that are still unused in three neighbouring pairs. Only forwarding writes the marks and only seeding reads them, with
// a barrier between the two. Prefix sums number everything, so the result does not depend on the threads.
//
// An extended triplet becomes a track and takes a place in velo_tracks.hits. A triplet that is not extended stays a
// seed for velo_filter_three_hit_tracks. Two rules differ from the paper: if several tracks would take a hit, the
// closest one gets it, and seeds that turn in phi must be flat.
//
// In:  velo_hits.{x, y, z, phi}, velo_hits.module_pair_offset, velo_hits.phi_bin_offset, velo_geometry.
// Out: velo_tracks.hits [track][26] from large to small z, velo_tracks.hit_count, velo_tracks.candidate_count [event]:
//      tracks of four hits and more, clones included; velo_seeds.hits [seed][4]: three hits and the result for the
//      seed, velo_seeds.count [event]; velo_hits.used [hit].
// Scratch: open_* [open track], hit_bid, unused_hits and points [hit], downstream_hit [unused hit of one pair]. points
//      holds all hits once more, so that one access loads a hit. The form for the CPU keeps x, y, z and phi of the
//      unused hits downstream there.
// One block per event; threads stride over open tracks and over middle hits. A block of one warp needs no barriers
// across warps. A thread follows a line, and a warp the lines of a middle hit.
// Bounds: a hit is the middle of at most one triplet, so there are not more seeds and open tracks than hits. A track
// has at most one hit in each of the 26 pairs. An event has half as many places in velo_tracks.hits as clusters; one
// track more flags it. scratch.downstream_hit holds 8 places more than the hits of a pair, and points one more than
// hits: every event has 8 spare places.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/velo/tracking/forward_tracks.cuh"
#include "lhcb/velo/tracking/generated/velo_search_by_triplet.h"
#include "lhcb/velo/tracking/seed_tracks.cuh"

namespace hlt {

__device__ triplet_cuts triplet_cuts_of(const velo_search_by_triplet_parameters& p)
{
    return {p.max_seed_scatter,
            p.max_forward_scatter,
            p.max_shared_scatter,
            p.max_phi_tolerance,
            p.max_seed_slope * p.max_seed_slope,
            p.max_displaced_slope * p.max_displaced_slope,
            static_cast<int32_t>(p.seed_phi_tolerance),
            static_cast<int32_t>(p.displaced_phi_tolerance),
            p.max_skipped_pairs};
}

}  // namespace hlt

HLT_KERNEL(velo_search_by_triplet, HLT_HALF_OCCUPANCY)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ hlt::triplet_scratch scratch;

    const uint32_t first_hit = p.velo_hits.first(event);
    const uint32_t first_track = p.velo_tracks.first(event);
    const uint32_t n_hits = p.velo_clusters.count[event];
    const hlt::event_column<const uint32_t> pair_offset(p.velo_hits.module_pair_offset,
                                                        event * (hlt::n_velo_module_pairs + 1u));
    const hlt::triplet_cuts cuts = hlt::triplet_cuts_of(p);
    hlt::triplet_search search{cuts,
                               {{p.velo_hits.x, first_hit},
                                {p.velo_hits.y, first_hit},
                                {p.velo_hits.z, first_hit},
                                {p.velo_hits.phi, first_hit},
                                {p.velo_hits.used, first_hit},
                                {reinterpret_cast<hlt::hit_point*>(p.scratch.points), first_hit},
                                {p.velo_hits.phi_bin_offset, event * hlt::phi_bin_stride},
                                pair_offset},
                               p.velo_geometry->module_z,
                               {p.velo_tracks.hits, first_track * hlt::max_velo_track_hits},
                               {p.velo_tracks.hit_count, first_track},
                               {p.velo_seeds.hits, 4u * first_hit},
                               {reinterpret_cast<hlt::open_track*>(p.scratch.open_tracks), first_hit},
                               {p.scratch.open_found, first_hit},
                               {p.scratch.hit_bid, first_hit},
                               {p.scratch.unused_hits, first_hit},
                               {{p.scratch.downstream_hit, first_hit},
                                {reinterpret_cast<hlt::hit_point*>(p.scratch.points), first_hit},
                                n_hits},
                               (first_hit + p.velo_clusters.bound[event]) / 2u - first_track,
                               0,
                               0,
                               0,
                               false};

    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) {
        search.hits.used[i] = 0;
        search.bid[i] = 0xffffffffu;
        const uint32_t phi_and_hit = static_cast<uint16_t>(search.hits.phi[i]) | i << 16;
        search.hits.points[i] = {search.hits.x[i], search.hits.y[i], search.hits.z[i], __uint_as_float(phi_and_hit)};
    }
    if (threadIdx.x == 0 && n_hits > 0u) search.hits.points[n_hits] = {hlt::not_a_number(), 0.f, 0.f, 0.f};
    hlt::block_barrier();
    constexpr uint32_t last_pair = hlt::n_velo_module_pairs - 1u;
    const auto list_of_pair = [&](uint32_t pair) {
        const hlt::event_column<uint16_t> unused = search.unused.from(pair_offset[pair]);
        return hlt::list_unused(
            search, scratch, pair_offset[pair + 1u] - pair_offset[pair],
            [&](uint32_t i) { return pair_offset[pair] + i; },
            [&](uint32_t i, uint32_t hit) { unused[i] = static_cast<uint16_t>(hit); });
    };
    uint32_t n_downstream = list_of_pair(last_pair);
    for (uint32_t pair = last_pair - 1u; pair >= 1u; --pair) {
        hlt::forward_tracks(search, scratch, pair - 1u);
        n_downstream =
            hlt::gather_downstream(search, scratch, search.unused.from(pair_offset[pair + 1u]), n_downstream);
        const uint32_t n_middle = list_of_pair(pair);
        if (n_middle > 0u) {
            hlt::block_barrier();
            hlt::fill_downstream(search, n_downstream);
            hlt::block_barrier();
            hlt::seed_tracks(search, scratch, pair, n_downstream, n_middle);
        }
        n_downstream = n_middle;
    }

    if (threadIdx.x == 0) {
        p.velo_tracks.candidate_count[event] = search.n_tracks;
        p.velo_seeds.count[event] = search.n_seeds;
    }
    if (search.overflow) atomicOr(&p.events.flags[event], static_cast<uint32_t>(hlt::overflow));
}
