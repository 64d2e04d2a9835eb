// Search by triplet: VELO tracks from hits sorted by phi (reconstruction-facts.md 1.4, hlt1-allen.md 3.6).
//
// From the last module pair towards the first, two steps take turns. *Forwarding* extends every open track into the next
// pair along the line through its last two hits; what it finds marks hits as used. *Seeding* makes triplets of hits that
// are still unused in three neighbouring pairs: for every middle hit the nearest hits in phi of the pair downstream, and
// of all lines through both the hit upstream that scatters least. Only forwarding writes the marks and only seeding reads
// them, with a barrier between the two, and everything is numbered by prefix sums: the result does not depend on threads.
//
// A triplet that is extended becomes a track and takes a place in velo_track_hits. One that is not is left as a seed for
// velo_filter_three_hit_tracks.
//
// In:  velo_hit_{x, y, z, phi}, velo_module_pair_offset, velo_phi_bin_offset, velo_geometry.
// Out: velo_track_hits [track][26] from large to small z, velo_track_hit_count, velo_candidate_count [event]: tracks of
//      four hits and more, not yet cleaned; velo_seed_hits [seed][4]: three hits and the fate of the seed,
//      velo_seed_count [event]; velo_hit_used [hit]; scratch velo_open_hits, velo_open_state, velo_unused_hits.
// One block per event; threads stride over open tracks and over middle hits, in tiles that fit in shared memory.
// Bounds: a hit is the middle of at most one triplet, so there are not more seeds and open tracks than hits. A track has
// at most one hit in each of the 26 pairs. It needs a place in velo_track_hits: the event has half as many as clusters;
// one track more flags it.
#pragma once

#include "../batch/batch.cuh"
#include "track.cuh"
#include "triplet_lines.cuh"

struct velo_search_by_triplet_parameters {
    const hlt::batch_header* batch_header;
    const hlt::velo_geometry* velo_geometry;
    const uint32_t* velo_cluster_bound;
    const uint32_t* velo_cluster_offset;
    const float* velo_hit_x;
    const float* velo_hit_y;
    const float* velo_hit_z;
    const int16_t* velo_hit_phi;
    const uint32_t* velo_cluster_count;
    const uint32_t* velo_module_pair_offset;
    const uint16_t* velo_phi_bin_offset;
    uint32_t* event_flags;
    uint16_t* velo_track_hits;
    uint8_t* velo_track_hit_count;
    uint32_t* velo_candidate_count;
    uint16_t* velo_seed_hits;
    uint32_t* velo_seed_count;
    uint32_t* velo_hit_used;
    uint32_t* velo_open_hits;
    uint32_t* velo_open_state;
    uint32_t* velo_open_found;
    uint32_t* velo_open_bid;
    uint32_t* velo_hit_bid;
    uint16_t* velo_unused_hits;
    float* velo_downstream_x;
    float* velo_downstream_y;
    float* velo_downstream_z;
    int32_t* velo_downstream_phi;
    uint16_t* velo_downstream_hit;
    float max_seed_scatter;     // mm^2, squared distance of the third hit from the line
    float max_forward_scatter;  // the same for hits that extend a track
    float max_shared_scatter;
    float max_phi_tolerance;      // of the third and later hits, in units of 2 pi / 2^16
    float max_seed_slope;         // dr/dz of the line through the first two hits
    float max_displaced_slope;
    uint32_t seed_phi_tolerance;  // between the first two hits, in units of 2 pi / 2^16
    uint32_t displaced_phi_tolerance;
    uint32_t max_skipped_pairs;
};

namespace hlt {

constexpr uint32_t middle_tile = 32;                            // middle hits of a tile
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

/// Everything that forwarding and seeding of one event work on.
struct triplet_search {
    velo_hits hits;
    const float* module_z;
    uint16_t* track_hits;
    uint8_t* track_hit_count;
    uint16_t* seed_hits;
    uint32_t* used;
    uint32_t* open_hits;   // the last two hits, 16 bits each, the upstream one above
    uint32_t* open_state;
    uint32_t* open_found;  // hit that it would take
    uint32_t* open_bid;
    uint32_t* bid;         // lowest for each hit
    uint16_t* unused;      // in the place of each pair its unused hits
    downstream_hits downstream;
    uint32_t max_tracks;
    uint32_t n_open, n_tracks, n_seeds;
    bool overflow;
};

/// What the threads of a block share.
struct triplet_scratch {
    line_tile lines;
    closest_hit found[triplet_tile];
    uint32_t sum[max_block_size + 1];
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
        const uint32_t keep = i < n && search.used[hit] == 0 ? 1u : 0u;
        uint32_t total;
        const uint32_t at = n_unused + block_exclusive_sum(keep, scratch.sum, total);
        if (keep != 0u) out[at] = static_cast<uint16_t>(hit);
        n_unused += total;
    }
    return n_unused;
}

/// Append a hit to an open track or seed. Returns false if there is no place for a new track.
__device__ bool append_hit(triplet_search& search, uint32_t& state, uint32_t new_track, uint32_t hit)
{
    uint32_t track = state & open_index_mask;
    if ((state & open_is_track) == 0u) {
        if (new_track >= search.max_tracks) return false;
        uint16_t* seed = search.seed_hits + 4u * track;
        seed[3] = seed_extended;
        for (uint32_t k = 0; k < 3u; ++k) {
            search.track_hits[new_track * max_velo_track_hits + k] = seed[k];
            search.used[seed[k]] = 1;
        }
        search.track_hit_count[new_track] = 3;
        track = new_track;
    }
    const uint32_t n = search.track_hit_count[track];
    search.track_hits[track * max_velo_track_hits + n] = static_cast<uint16_t>(hit);
    search.track_hit_count[track] = static_cast<uint8_t>(n + 1u);
    search.used[hit] = 1;
    state = track | open_is_track;
    return true;
}

/// What open track i bids for a hit: its scatter, coarsely, then its number. The lowest bid gets the hit.
__device__ uint32_t bid_of(const closest_hit& found, uint32_t i) { return (found.rank & 0xffff0000u) | i; }

/// Find the hit of pair `target` that each open track would take, and bid for it.
__device__ void bid_for_hits(triplet_search& search, triplet_scratch& scratch, uint32_t target,
                             const velo_search_by_triplet_parameters& p)
{
    line_tile& lines = scratch.lines;
    for (uint32_t base = 0; base < search.n_open; base += triplet_tile) {
        const uint32_t n_tile = min_of(search.n_open - base, triplet_tile);
        for (uint32_t i = threadIdx.x; i < n_tile; i += blockDim.x) {
            const uint32_t last_two = search.open_hits[base + i];
            const uint32_t from = target + 1u + search.open_state[base + i] / open_skipped_unit;
            const float dz = search.module_z[2u * target] - search.module_z[2u * from];
            const uint32_t a = last_two & 0xffffu, b = last_two >> 16;
            lines.dz[i] = dz;
            lines.x[i] = search.hits.x[b];
            lines.y[i] = search.hits.y[b];
            lines.z[i] = search.hits.z[b];
            lines.tx[i] = search.hits.x[a];
            lines.ty[i] = search.hits.y[a];
            lines.tz[i] = search.hits.z[a];
        }
        __syncthreads();
        follow_lines(lines, n_tile, target, p.max_forward_scatter, p.max_phi_tolerance);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n_tile; i += blockDim.x) {
            const closest_hit found =
                find_closest_hit<false>(lines, i, search.hits, target, search.used, p.max_forward_scatter);
            const uint32_t bid = bid_of(found, base + i);
            search.open_found[base + i] = found.hit;
            search.open_bid[base + i] = bid;
            if (found.hit != no_hit) atomicMin(&search.bid[found.hit], bid);
        }
        __syncthreads();
    }
}

/// Extend the open tracks into pair `target`; those that have skipped too many pairs are closed. A hit goes to the track
/// that bids least, and to others only if they are as good as sure (max_shared_scatter): conversions share hits.
__device__ void forward_tracks(triplet_search& search, triplet_scratch& scratch, uint32_t target,
                               const velo_search_by_triplet_parameters& p)
{
    bid_for_hits(search, scratch, target, p);
    const uint32_t shared_bid = __float_as_uint(p.max_shared_scatter) & 0xffff0000u;
    uint32_t n_kept = 0;
    for (uint32_t base = 0; base < search.n_open; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        uint32_t state = 0, last_two = 0, hit = no_hit, shares = 0;
        if (i < search.n_open) {
            state = search.open_state[i];
            last_two = search.open_hits[i];
            hit = search.open_found[i];
            if (hit != no_hit && search.bid[hit] != search.open_bid[i]) {
                if (search.open_bid[i] >= shared_bid || (state & open_shares) != 0u) hit = no_hit;
                shares = open_shares;
            }
        }
        const bool extended = hit != no_hit;
        uint32_t n_new;
        const uint32_t is_new = extended && (state & open_is_track) == 0u ? 1u : 0u;
        const uint32_t new_track = search.n_tracks + block_exclusive_sum(is_new, scratch.sum, n_new);
        bool kept = false;
        if (extended) {
            last_two = last_two >> 16 | hit << 16;
            kept = append_hit(search, state, new_track, hit);
            state |= shares;
            if (!kept) search.overflow = true;
        } else if (i < search.n_open) {
            state += open_skipped_unit;
            kept = state / open_skipped_unit <= p.max_skipped_pairs;
        }
        uint32_t n_still_open;
        const uint32_t at = n_kept + block_exclusive_sum(kept ? 1u : 0u, scratch.sum, n_still_open);
        if (kept) {
            search.open_hits[at] = last_two;
            search.open_state[at] = state;
        }
        search.n_tracks = min_of(search.n_tracks + n_new, search.max_tracks);
        n_kept += n_still_open;
    }
    search.n_open = n_kept;
    __syncthreads();
}

/// Copy the n unused hits of the pair downstream to where they stand one behind the other, and before the first and
/// behind the last half a window of those from the other end: phi wraps.
__device__ void gather_downstream(triplet_search& search, const uint16_t* unused, uint32_t n)
{
    for (uint32_t i = threadIdx.x; n > 0u && i < n + max_partners; i += blockDim.x) {
        uint32_t at = i + n - min_of(n, max_partners / 2u);
        while (at >= n) at -= n;
        const uint32_t hit = unused[at];
        search.downstream.x[i] = search.hits.x[hit];
        search.downstream.y[i] = search.hits.y[hit];
        search.downstream.z[i] = search.hits.z[hit];
        search.downstream.phi[i] = search.hits.phi[hit];
        search.downstream.hit[i] = static_cast<uint16_t>(hit);
    }
}

/// What a middle hit asks of a hit downstream that makes a line with it.
struct partner_cuts {
    float max_slope2;
    float max_displaced_slope2;
    int32_t phi_tolerance;
    int32_t displaced_phi_tolerance;
};

/// Hits downstream from `first` on, of at most max_partners the first n, that may be on a track with the middle hit.
/// Writes their places to `partners` and returns how many.
__device__ uint32_t choose_partners(const triplet_search& search, uint32_t middle, uint32_t first, uint32_t n,
                                    const partner_cuts& cuts, uint16_t (&partners)[max_partners + 1u])
{
    const float middle_x = search.hits.x[middle], middle_y = search.hits.y[middle], middle_z = search.hits.z[middle];
    const int32_t middle_phi = search.hits.phi[middle];
    uint32_t n_partners = 0;
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    for (uint32_t k = 0; k < min_of(n, max_partners); ++k) {
        const int32_t turn = static_cast<int16_t>(search.downstream.phi[first + k] - middle_phi);
        const int32_t distance = turn < 0 ? -turn : turn;
        const float dx = search.downstream.x[first + k] - middle_x;
        const float dy = search.downstream.y[first + k] - middle_y;
        const float dz = search.downstream.z[first + k] - middle_z;
        const float max2 = distance > cuts.phi_tolerance ? cuts.max_displaced_slope2 : cuts.max_slope2;
        if (distance <= cuts.displaced_phi_tolerance && dx * dx + dy * dy <= max2 * (dz * dz))
            partners[n_partners++] = static_cast<uint16_t>(first + k);
    }
#else
    float8 x, y, z;
    uint8x32 phi;
    load8(x, search.downstream.x + first);
    load8(y, search.downstream.y + first);
    load8(z, search.downstream.z + first);
    load8(phi, search.downstream.phi + first);
    const uint8x32 shifted = (phi - static_cast<uint32_t>(middle_phi)) << 16;
    int8x32 turn;
    load8(turn, &shifted);
    turn >>= 16;
    const int8x32 distance = turn < 0 ? -turn : turn;
    const float8 dx = x - middle_x, dy = y - middle_y, dz = z - middle_z;
    const float8 slope2 = dx * dx + dy * dy, dz2 = dz * dz;
    const int8x32 lane{0, 1, 2, 3, 4, 5, 6, 7};
    const int8x32 fits = (lane < static_cast<int32_t>(n)) & (distance <= cuts.displaced_phi_tolerance) &
                         ((distance > cuts.phi_tolerance) ? slope2 <= cuts.max_displaced_slope2 * dz2
                                                          : slope2 <= cuts.max_slope2 * dz2);
    for (uint32_t k = 0; k < max_partners; ++k) {
        partners[n_partners] = static_cast<uint16_t>(first + k);
        n_partners -= static_cast<uint32_t>(fits[k]);
    }
#endif
    return n_partners;
}

/// List the lines of a tile of middle hits. Returns how many.
__device__ uint32_t list_lines(triplet_search& search, triplet_scratch& scratch, const uint16_t* middle, uint32_t n_tile,
                               uint32_t n_downstream, uint32_t& nearest, const velo_search_by_triplet_parameters& p)
{
    constexpr uint32_t half = max_partners / 2u;
    const partner_cuts cuts{p.max_seed_slope * p.max_seed_slope, p.max_displaced_slope * p.max_displaced_slope,
                            static_cast<int32_t>(p.seed_phi_tolerance),
                            static_cast<int32_t>(p.displaced_phi_tolerance)};
    const bool few = n_downstream <= max_partners;  // then all are tried
    uint32_t n_lines = 0;
    for (uint32_t base = 0; base < n_tile; base += blockDim.x) {
        const uint32_t m = base + threadIdx.x;
        uint16_t partners[max_partners + 1u];  // one may be written behind the last
        uint32_t n_partners = 0, hit = 0;
        if (m < n_tile) {
            hit = middle[m];
            while (!few && nearest < n_downstream && search.downstream.phi[half + nearest] < search.hits.phi[hit]) ++nearest;
            const uint32_t first = few ? min_of(half, n_downstream) : nearest;
            if (n_downstream > 0u) n_partners = choose_partners(search, hit, first, n_downstream, cuts, partners);
        }
        uint32_t total;
        const uint32_t line = n_lines + block_exclusive_sum(n_partners, scratch.sum, total);
        if (m < n_tile) scratch.first_line[m] = static_cast<uint16_t>(line);
        for (uint32_t k = 0; k < n_partners; ++k) {
            scratch.lines.a[line + k] = partners[k];
            scratch.lines.b[line + k] = static_cast<uint16_t>(hit);
        }
        n_lines += total;
    }
    if (threadIdx.x == 0) scratch.first_line[n_tile] = static_cast<uint16_t>(n_lines);
    __syncthreads();
    return n_lines;
}

/// Of the lines of each middle hit of a tile the one with the closest third hit becomes a seed.
__device__ void make_seeds(triplet_search& search, triplet_scratch& scratch, uint32_t n_tile)
{
    const line_tile& lines = scratch.lines;
    for (uint32_t base = 0; base < n_tile; base += blockDim.x) {
        const uint32_t m = base + threadIdx.x;
        closest_hit best{no_hit, no_rank};
        uint32_t best_line = 0;
        if (m < n_tile) {
            for (uint32_t i = scratch.first_line[m]; i < scratch.first_line[m + 1u]; ++i) {
                const closest_hit found = scratch.found[i];
                const bool closer = found.scatter_bits() < best.scatter_bits();
                best = closer ? found : best;
                best_line = closer ? i : best_line;
            }
        }
        const bool found = best.hit != no_hit;
        uint32_t n_found;
        const uint32_t at = block_exclusive_sum(found ? 1u : 0u, scratch.sum, n_found);
        if (found) {
            uint16_t* seed = search.seed_hits + 4u * (search.n_seeds + at);
            seed[0] = search.downstream.hit[lines.a[best_line]];
            seed[1] = lines.b[best_line];
            seed[2] = static_cast<uint16_t>(best.hit);
            seed[3] = seed_left;
            search.open_hits[search.n_open + at] = lines.b[best_line] | best.hit << 16;
            search.open_state[search.n_open + at] = search.n_seeds + at;
        }
        search.n_seeds += n_found;
        search.n_open += n_found;
    }
}

/// Make triplets of unused hits with the middle one in `pair`.
__device__ void seed_tracks(triplet_search& search, triplet_scratch& scratch, uint32_t pair, uint32_t n_downstream,
                            uint32_t n_middle, const velo_search_by_triplet_parameters& p)
{
    line_tile& lines = scratch.lines;
    const velo_hits& hits = search.hits;
    const uint16_t* middle = search.unused + hits.module_pair_offset[pair];
    const float dz = search.module_z[2u * pair - 2u] - search.module_z[2u * pair];
    uint32_t nearest = 0;  // first hit downstream whose phi is not below that of the middle hit; only rises
    for (uint32_t base = 0; base < n_middle; base += middle_tile) {
        const uint32_t n_tile = min_of(n_middle - base, middle_tile);
        const uint32_t n_lines = list_lines(search, scratch, middle + base, n_tile, n_downstream, nearest, p);
        for (uint32_t i = threadIdx.x; i < n_lines; i += blockDim.x) {
            const uint32_t a = lines.a[i], b = lines.b[i];
            lines.dz[i] = dz;
            lines.x[i] = hits.x[b];
            lines.y[i] = hits.y[b];
            lines.z[i] = hits.z[b];
            lines.tx[i] = search.downstream.x[a];
            lines.ty[i] = search.downstream.y[a];
            lines.tz[i] = search.downstream.z[a];
        }
        __syncthreads();
        follow_lines(lines, n_lines, pair - 1u, p.max_seed_scatter, p.max_phi_tolerance);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n_lines; i += blockDim.x)
            scratch.found[i] = find_closest_hit<true>(lines, i, hits, pair - 1u, search.used, p.max_seed_scatter);
        __syncthreads();
        make_seeds(search, scratch, n_tile);
        __syncthreads();
    }
}

}  // namespace hlt

HLT_KERNEL(velo_search_by_triplet)
{
    const velo_search_by_triplet_parameters p = *parameters;
    const uint32_t event = blockIdx.x;
    if (event >= p.batch_header->n_events) return;
    __shared__ hlt::triplet_scratch scratch;

    const uint32_t first_hit = p.velo_cluster_offset[event];
    const uint32_t first_track = first_hit / 2u;
    const uint32_t n_hits = p.velo_cluster_count[event];
    const uint32_t* pair_offset = p.velo_module_pair_offset + event * (hlt::n_velo_module_pairs + 1u);
    hlt::triplet_search search{
        {p.velo_hit_x + first_hit, p.velo_hit_y + first_hit, p.velo_hit_z + first_hit, p.velo_hit_phi + first_hit,
         p.velo_phi_bin_offset + event * hlt::phi_bin_stride, pair_offset},
        p.velo_geometry->module_z,
        p.velo_track_hits + first_track * hlt::max_velo_track_hits,
        p.velo_track_hit_count + first_track,
        p.velo_seed_hits + 4u * first_hit,
        p.velo_hit_used + first_hit,
        p.velo_open_hits + first_hit,
        p.velo_open_state + first_hit,
        p.velo_open_found + first_hit,
        p.velo_open_bid + first_hit,
        p.velo_hit_bid + first_hit,
        p.velo_unused_hits + first_hit,
        {p.velo_downstream_x + first_hit, p.velo_downstream_y + first_hit, p.velo_downstream_z + first_hit,
         p.velo_downstream_phi + first_hit, p.velo_downstream_hit + first_hit},
        (first_hit + p.velo_cluster_bound[event]) / 2u - first_track,
        0,
        0,
        0,
        false};

    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) {
        search.used[i] = 0;
        search.bid[i] = 0xffffffffu;
    }
    __syncthreads();
    constexpr uint32_t last_pair = hlt::n_velo_module_pairs - 1u;
    uint32_t n_downstream = hlt::list_unused(
        search, scratch, pair_offset[last_pair + 1u] - pair_offset[last_pair],
        [&](uint32_t i) { return pair_offset[last_pair] + i; }, search.unused + pair_offset[last_pair]);
    for (uint32_t pair = last_pair - 1u; pair >= 1u; --pair) {
        hlt::forward_tracks(search, scratch, pair - 1u, p);
        uint16_t* downstream = search.unused + pair_offset[pair + 1u];
        n_downstream = hlt::list_unused(
            search, scratch, n_downstream, [&](uint32_t i) -> uint32_t { return downstream[i]; }, downstream);
        __syncthreads();
        hlt::gather_downstream(search, downstream, n_downstream);
        const uint32_t n_middle = hlt::list_unused(
            search, scratch, pair_offset[pair + 1u] - pair_offset[pair],
            [&](uint32_t i) { return pair_offset[pair] + i; }, search.unused + pair_offset[pair]);
        __syncthreads();
        hlt::seed_tracks(search, scratch, pair, n_downstream, n_middle, p);
        n_downstream = n_middle;
    }

    if (threadIdx.x == 0) {
        p.velo_candidate_count[event] = search.n_tracks;
        p.velo_seed_count[event] = search.n_seeds;
    }
    if (search.overflow) atomicOr(&p.event_flags[event], static_cast<uint32_t>(hlt::overflow));
}
