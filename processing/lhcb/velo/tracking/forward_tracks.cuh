// Forwarding: every open track is extended into the next module pair along the line through its last two hits.
//
// If several tracks would take a hit, the track that passes closest gets it. So a track that ends does not continue
// with the hits of another track, and the order of tracks or threads does not matter.
#pragma once

#include "lhcb/velo/tracking/triplet_search.cuh"

namespace hlt {

/// Append a hit to an open track or seed. Returns false if there is no place for a new track.
__device__ bool append_hit(triplet_search& search, uint32_t& state, uint32_t new_track, uint32_t hit)
{
    uint32_t track = state & open_index_mask;
    if ((state & open_is_track) == 0u) {
        if (new_track >= search.max_tracks) return false;
        const event_column<uint16_t> seed = search.seed_hits.from(4u * track);
        seed[3] = seed_extended;
        for (uint32_t k = 0; k < 3u; ++k) {
            search.track_hits[new_track * max_velo_track_hits + k] = seed[k];
            search.hits.used[seed[k]] = 1;
        }
        search.track_hit_count[new_track] = 3;
        track = new_track;
    }
    const uint32_t n = search.track_hit_count[track];
    search.track_hits[track * max_velo_track_hits + n] = static_cast<uint16_t>(hit);
    search.track_hit_count[track] = static_cast<uint8_t>(n + 1u);
    search.hits.used[hit] = 1;
    state = track | open_is_track;
    return true;
}

/// The bid of open track i for the hit that it found: the upper bits of the scatter, then i. The lowest bid gets the
/// hit.
__device__ uint32_t bid_of(uint32_t found, uint32_t i) { return (found & 0xffff0000u) | i; }

/// Find the hit of pair `target` that each open track would take, and bid for it.
__device__ void bid_for_hits(triplet_search& search, uint32_t target)
{
    const velo_hits& hits = search.hits;
    const line_target where(hits, target, search.cuts.max_forward_scatter, search.cuts.max_phi_tolerance);
    const float target_z = search.module_z[2u * target];
    const auto line_at = [&](uint32_t i) -> two_hits {
        const open_track track = search.open[i];
        const uint32_t from = target + 1u + track.state / open_skipped_unit;
        return {hits[track.last_two & 0xffffu], hits[track.last_two >> 16], target_z - search.module_z[2u * from]};
    };
    const auto bid = [&](uint32_t i, const closest_hit& closest) {
        if (i >= search.n_open) return;
        const uint32_t found = (closest.scatter_bits & 0xffff0000u) | closest.hit;
        search.open_found[i] = found;
        if (closest.hit != no_hit) atomicMin(&search.bid[closest.hit], bid_of(found, i));
    };
    follow_lines<false>(hits, where, {threadIdx.x / warp_size * warp_size, blockDim.x}, search.n_open, line_at, bid);
    block_barrier();
}

/// Extend the open tracks into pair `target`; tracks that have skipped too many pairs are closed. A hit goes to the
/// track with the lowest bid. Others share it only if their scatter is below max_shared_scatter: conversions share
/// hits.
__device__ void forward_tracks(triplet_search& search, triplet_scratch& scratch, uint32_t target)
{
    bid_for_hits(search, target);
    const uint32_t shared_bid = __float_as_uint(search.cuts.max_shared_scatter) & 0xffff0000u;
    uint32_t n_kept = 0;
    for (uint32_t base = 0; base < search.n_open; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        open_track track{0, 0};
        uint32_t hit = no_hit, shares = 0;
        if (i < search.n_open) {
            track = search.open[i];
            const uint32_t found = search.open_found[i];
            hit = found & 0xffffu;
            if (hit != no_hit) {
                const uint32_t bid = bid_of(found, i);
                if (search.bid[hit] != bid) {
                    if (bid >= shared_bid || (track.state & open_shares) != 0u) hit = no_hit;
                    shares = open_shares;
                }
            }
        }
        const bool extended = hit != no_hit;
        uint32_t n_new;
        const bool is_new = extended && (track.state & open_is_track) == 0u;
        const uint32_t new_track = search.n_tracks + block_exclusive_count(is_new, scratch.sum, n_new);
        bool kept = false;
        if (extended) {
            track.last_two = track.last_two >> 16 | hit << 16;
            kept = append_hit(search, track.state, new_track, hit);
            track.state |= shares;
            if (!kept) search.overflow = true;
        } else if (i < search.n_open) {
            track.state += open_skipped_unit;
            kept = track.state / open_skipped_unit <= search.cuts.max_skipped_pairs;
        }
        uint32_t n_still_open;
        const uint32_t at = n_kept + block_exclusive_count(kept, scratch.sum, n_still_open);
        if (kept) search.open[at] = track;
        search.n_tracks = min_of(search.n_tracks + n_new, search.max_tracks);
        n_kept += n_still_open;
    }
    search.n_open = n_kept;
    block_barrier();
}

}  // namespace hlt
