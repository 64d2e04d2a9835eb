// State of search by triplet for one event.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/velo/generated/velo_types.h"
#include "lhcb/velo/tracking/triplet_lines.cuh"

namespace hlt {

constexpr uint32_t max_partners = 8;  // downstream hits tried with each middle hit: half on either side
static_assert(max_partners <= velo_hit_padding, "the copy of hits downstream must end before the next event's");

/// A track or seed that may still be extended.
struct alignas(8) open_track {
    uint32_t last_two;  // hits, 16 bits each, the upstream one above
    uint32_t state;
};

/// Its state: index of the track or seed, a bit for a track, pairs skipped since the last hit.
constexpr uint32_t open_index_mask = 0xffff;
constexpr uint32_t open_is_track = 1u << 16;
constexpr uint32_t open_shares = 1u << 17;
constexpr uint32_t open_skipped_unit = 1u << 18;

/// Unused hits of the pair downstream of the middle one: half a window of places, the hits in the order of phi, half a
/// window of places. If there are more hits than a window has, these places hold the hits from the other end, because
/// phi wraps.
struct downstream_hits {
    event_column<uint16_t> hit;
    event_column<hit_point> points;  // of all hits, then a point through which no line goes
    uint32_t no_point;               // its index

    __device__ hit_point operator[](uint32_t place) const { return points[hit[place]]; }
};

/// The constants of the search.
struct triplet_cuts {
    float max_seed_scatter;           // mm^2, squared distance of the third hit from the line
    float max_forward_scatter;        // the same for hits that extend a track
    float max_shared_scatter;         // the same for a hit that another track is closer to
    float max_phi_tolerance;          // of the third and later hits, in units of 2 pi / 2^16
    float max_slope2;                 // squared dr/dz of the line through the first two hits
    float max_displaced_slope2;       // the same where phi differs by more than phi_tolerance
    int32_t phi_tolerance;            // between the first two hits, in units of 2 pi / 2^16
    int32_t displaced_phi_tolerance;  // never more than this
    uint32_t max_skipped_pairs;
};

/// The data of forwarding and seeding of one event.
struct triplet_search {
    triplet_cuts cuts;
    velo_hits hits;
    const float* module_z;
    event_column<uint16_t> track_hits;
    event_column<uint8_t> track_hit_count;
    event_column<uint16_t> seed_hits;
    event_column<open_track> open;
    event_column<uint32_t> open_found;  // the hit that it found; above it the upper bits of the scatter
    event_column<uint32_t> bid;         // lowest for each hit
    event_column<uint16_t> unused;      // of each pair, in the places of its hits
    downstream_hits downstream;
    uint32_t max_tracks;
    uint32_t n_open, n_tracks, n_seeds;
    bool overflow;
};

/// Data that the threads of a block share.
struct triplet_scratch {
    uint32_t sum[max_block_size / warp_size];
    // For the middle hit of each thread:
    uint32_t places[max_block_size];               // place of its first partner; above the hit
    uint32_t best[max_block_size];                 // lowest rank of its lines: bits of the scatter, then the partner
    uint8_t lines[max_block_size * max_partners];  // consecutive for each warp: middle hit and partner
};

/// Call `keep(i, hit)` for each of n hits that no track uses, in order, with i counting from 0. Returns their number.
template <typename Hit, typename Keep>
__device__ uint32_t list_unused(const triplet_search& search, triplet_scratch& scratch, uint32_t n, Hit hit_at,
                                Keep keep)
{
    uint32_t n_unused = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        uint32_t hit = 0;
        bool is_unused = false;
        if (i < n) {
            hit = hit_at(i);
            is_unused = search.hits.used[hit] == 0;
        }
        uint32_t total;
        const uint32_t at = n_unused + block_exclusive_count(is_unused, scratch.sum, total);
        if (is_unused) keep(at, hit);
        n_unused += total;
    }
    return n_unused;
}

}  // namespace hlt
