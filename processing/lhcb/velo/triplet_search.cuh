// State of search by triplet while it goes through the module pairs of one event.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/velo/generated/velo_types.h"
#include "lhcb/velo/triplet_lines.cuh"

namespace hlt {

constexpr uint32_t middle_tile = 32;                           // middle hits of a tile
constexpr uint32_t max_partners = triplet_tile / middle_tile;  // downstream hits tried with each: half on either side
static_assert(max_partners <= velo_hit_padding, "the copy of hits downstream must end before the next event's");

/// State of an open track: index of its track or seed, whether it is a track yet, pairs skipped since the last hit.
constexpr uint32_t open_index_mask = 0xffff;
constexpr uint32_t open_is_track = 1u << 16;
constexpr uint32_t open_shares = 1u << 17;
constexpr uint32_t open_skipped_unit = 1u << 18;

/// Unused hits of the pair downstream of the middle one, half a window before the first and behind the last.
struct downstream_hits {
    float* x;
    float* y;
    float* z;
    int32_t* phi;
    uint16_t* hit;
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

/// Everything that forwarding and seeding of one event work on.
struct triplet_search {
    triplet_cuts cuts;
    velo_hits hits;
    const float* module_z;
    uint16_t* track_hits;
    uint8_t* track_hit_count;
    uint16_t* seed_hits;
    uint32_t* used;
    uint32_t* open_hits;  // the last two hits, 16 bits each, the upstream one above
    uint32_t* open_state;
    uint32_t* open_found;  // hit that it would take
    uint32_t* open_bid;
    uint32_t* bid;     // lowest for each hit
    uint16_t* unused;  // in the place of each pair its unused hits
    downstream_hits downstream;
    uint32_t max_tracks;
    uint32_t n_open, n_tracks, n_seeds;
    bool overflow;
};

/// What the threads of a block share.
struct triplet_scratch {
    line_tile lines;
    closest_hit found[triplet_tile];
    uint32_t sum[max_block_size / warp_size];
    uint16_t first_line[middle_tile + 1u];  // lines of middle hit m of a tile are [m] .. [m + 1]
};

/// Keep, in order, those of n hits that no track uses; n may be the block's to read and `out` may overlay `in`.
template <typename Hit>
__device__ uint32_t list_unused(const triplet_search& search, triplet_scratch& scratch, uint32_t n, Hit hit_at,
                                uint16_t* out)
{
    uint32_t n_unused = 0;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        const uint32_t hit = i < n ? hit_at(i) : 0;
        const bool keep = i < n && search.used[hit] == 0;
        uint32_t total;
        const uint32_t at = n_unused + block_exclusive_count(keep, scratch.sum, total);
        if (keep || blockDim.x == 1u) out[at] = static_cast<uint16_t>(hit);  // alone: no branch is faster
        n_unused += total;
    }
    return n_unused;
}

}  // namespace hlt
