// Track candidates of velo_follow_tracks, shared by its common kernel and its form for the CPU. The two differ only in
// how they find the hits near a line.
#pragma once

#include "framework/device/math.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/velo/generated/velo_types.h"

namespace hlt {

constexpr uint32_t max_seed_partners = 10;  // hits downstream tried with each middle hit
constexpr uint32_t nothing_found = 0xffff;
static_assert(nothing_found >= max_velo_clusters_of_event);

// Values of the constant `plane_kind`: what a plane of the search is (A. Hennequin, thesis, 5.4.1).
constexpr uint32_t pairs_as_planes = 0;    // both modules of a pair
constexpr uint32_t halves_apart = 1;       // one module of each pair: one half of the detector, then the other
constexpr uint32_t modules_as_planes = 2;  // each of the 52 modules, so that a track may have hits of both of a pair

/// The hits of a module pair that lie on the sides whose bits are set.
struct hit_plane {
    uint32_t pair, sides;
};
constexpr uint32_t both_sides = 3;

/// A track or seed that may be extended upstream.
struct alignas(8) track_candidate {
    uint32_t last_two;  // hits, 16 bits each, the upstream one above
    uint32_t state;     // index of the track or seed, then the bits below
};

constexpr uint32_t candidate_index = 0xffff;
constexpr uint32_t candidate_is_track = 1u << 16;
constexpr uint32_t candidate_shares = 1u << 17;        // its last hit is shared with another candidate
constexpr uint32_t candidate_skipped_unit = 1u << 18;  // pairs without a hit since its last

/// A line as x and y at z = 0, and slopes.
struct candidate_line {
    float x, y, tx, ty;
};

/// The line through two points, the second one upstream.
__device__ candidate_line line_of(float ax, float ay, float az, float bx, float by, float bz)
{
    const float per_z = 1.f / (az - bz);
    const float tx = (ax - bx) * per_z, ty = (ay - by) * per_z;
    return {bx - tx * bz, by - ty * bz, tx, ty};
}

/// Squared distance (mm^2) of a hit from a line at the z of the hit.
__device__ float scatter_of(const candidate_line& line, float x, float y, float z)
{
    const float dx = x - (line.x + line.tx * z);
    const float dy = y - (line.y + line.ty * z);
    return dx * dx + dy * dy;
}

/// The hits of one event, and everything that following writes.
struct track_following {
    const float *x, *y, *z;
    const int16_t* phi;
    const uint32_t* id;
    const uint32_t* pair_offset;
    uint32_t* used;
    uint16_t* track_hits;
    uint8_t* track_hit_count;
    uint16_t* seed_hits;
    track_candidate* candidates;
    uint32_t* found;  // hit that a candidate would take; above it the scatter, coarsely
    uint32_t* bid;    // lowest for each hit
    float max_seed_scatter, max_follow_scatter, max_shared_scatter;
    float max_slope2, max_displaced_slope2;
    int32_t phi_tolerance, displaced_phi_tolerance;
    uint32_t plane_kind, max_skipped_planes, max_tracks, max_seeds;
    uint32_t n_partners;  // nearest hits in phi
    uint32_t n_candidates, n_tracks, n_seeds;
    bool overflow;

    __device__ uint32_t first_hit(const hit_plane& plane) const { return pair_offset[plane.pair]; }
    __device__ uint32_t end_of_hits(const hit_plane& plane) const { return pair_offset[plane.pair + 1u]; }

    /// True for a hit of the pair of a plane that lies in the plane. Modules of even number are on one side.
    __device__ bool is_in(const hit_plane& plane, uint32_t hit) const
    {
        return plane.sides == both_sides || (plane.sides >> (id[hit] >> 20 & 1u) & 1u) != 0u;
    }

    /// True if a hit downstream, `turn` away in phi, may begin a track with a middle hit.
    __device__ bool are_partners(int32_t turn, float dx, float dy, float dz) const
    {
        const int32_t distance = turn < 0 ? -turn : turn;
        const float max2 = distance > phi_tolerance ? max_displaced_slope2 : max_slope2;
        return distance <= displaced_phi_tolerance && dx * dx + dy * dy <= max2 * (dz * dz);
    }
};

/// Where the partners of a middle hit begin, relative to the first hit downstream with at least its phi: half of them
/// on either side. Of an odd number the last one is on the nearer side, the one with lower phi if both are equally
/// near. `below`, `above`: distances in phi of the two hits to choose from.
__device__ int32_t first_partner(uint32_t n_partners, int32_t below, int32_t above)
{
    const int32_t half = static_cast<int32_t>(n_partners / 2u);
    return n_partners % 2u == 1u && below <= above ? -half - 1 : -half;
}

/// Distance in phi of two hits, at most half of the circle.
__device__ int32_t phi_distance(int16_t one, int16_t other)
{
    const int32_t turn = static_cast<int16_t>(one - other);
    return turn < 0 ? -turn : turn;
}

/// Call `extend(up)` for each plane from the third one on, downstream first, and then `seed(down, middle, up)` for the
/// planes of each triplet that ends there. Of single modules a triplet may skip one between two hits; triplets with
/// more skipped modules come first.
template <typename Extend, typename Seed>
__device__ void take_steps(track_following& following, Extend extend, Seed seed)
{
    if (following.plane_kind == modules_as_planes) {
        const auto plane = [](uint32_t module) { return hit_plane{module / 2u, 1u << module % 2u}; };
        for (uint32_t up = n_velo_modules - 2u; up-- > 0u;) {
            extend(plane(up));
            for (uint32_t gaps = 4; gaps-- > 0u;) {
                const uint32_t middle = up + 1u + (gaps & 1u), down = middle + 1u + (gaps >> 1);
                if (down < n_velo_modules) seed(plane(down), plane(middle), plane(up));
            }
        }
        return;
    }
    const bool apart = following.plane_kind == halves_apart;
    for (uint32_t sides = apart ? 1u : both_sides; sides <= (apart ? 2u : both_sides); ++sides) {
        following.n_candidates = 0;
        for (uint32_t pair = n_velo_module_pairs - 2u; pair >= 1u; --pair) {
            extend(hit_plane{pair - 1u, sides});
            seed(hit_plane{pair + 1u, sides}, hit_plane{pair, sides}, hit_plane{pair - 1u, sides});
        }
    }
}

/// The bid of candidate i for the hit that it found: the upper bits of the scatter, then i. The lowest bid gets the
/// hit.
__device__ uint32_t bid_of_candidate(uint32_t found, uint32_t i) { return (found & 0xffff0000u) | i; }

/// Store the hit that candidate i found, and bid for it.
__device__ void note_found(track_following& following, uint32_t i, uint32_t hit, float scatter)
{
    const uint32_t found = (__float_as_uint(scatter) & 0xffff0000u) | hit;
    following.found[i] = found;
    if (hit != nothing_found) atomicMin(&following.bid[hit], bid_of_candidate(found, i));
}

/// Append a hit to a candidate; a seed becomes track `new_track`. Returns false if there is no place for it.
__device__ bool take_hit(track_following& following, uint32_t& state, uint32_t new_track, uint32_t hit)
{
    uint32_t track = state & candidate_index;
    if ((state & candidate_is_track) == 0u) {
        if (new_track >= following.max_tracks) return false;
        uint16_t* const seed = following.seed_hits + 4u * track;
        seed[3] = seed_extended;
        for (uint32_t k = 0; k < 3u; ++k) {
            following.track_hits[new_track * max_velo_track_hits + k] = seed[k];
            following.used[seed[k]] = 1;
        }
        following.track_hit_count[new_track] = 3;
        track = new_track;
    }
    const uint32_t n = following.track_hit_count[track];
    if (n == max_velo_track_hits) return false;
    following.track_hits[track * max_velo_track_hits + n] = static_cast<uint16_t>(hit);
    following.track_hit_count[track] = static_cast<uint8_t>(n + 1u);
    following.used[hit] = 1;
    state = track | candidate_is_track;
    return true;
}

/// After all candidates have bid, they take their hits or skip the pair; candidates with too many skipped pairs are
/// removed. All threads of the block call it, after a barrier. A hit goes to the candidate with the lowest bid. Others
/// share it only if their scatter is below max_shared_scatter, and not twice in a row.
__device__ void extend_candidates(track_following& following, uint32_t* scratch)
{
    const uint32_t shared_bid = __float_as_uint(following.max_shared_scatter) & 0xffff0000u;
    uint32_t n_kept = 0;
    for (uint32_t base = 0; base < following.n_candidates; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        track_candidate candidate{0, 0};
        uint32_t hit = nothing_found, shares = 0;
        if (i < following.n_candidates) {
            candidate = following.candidates[i];
            const uint32_t found = following.found[i];
            hit = found & 0xffffu;
            if (hit != nothing_found) {
                const uint32_t bid = bid_of_candidate(found, i);
                if (following.bid[hit] != bid) {
                    if (bid >= shared_bid || (candidate.state & candidate_shares) != 0u) hit = nothing_found;
                    shares = candidate_shares;
                }
            }
        }
        const bool extended = hit != nothing_found;
        const bool is_new = extended && (candidate.state & candidate_is_track) == 0u;
        uint32_t n_new, n_here;
        const uint32_t new_track = following.n_tracks + block_exclusive_count(is_new, scratch, n_new);
        bool kept = false;
        if (extended) {
            candidate.last_two = candidate.last_two >> 16 | hit << 16;
            kept = take_hit(following, candidate.state, new_track, hit);
            candidate.state |= shares;
            if (!kept) following.overflow = true;
        } else if (i < following.n_candidates) {
            candidate.state += candidate_skipped_unit;
            kept = candidate.state / candidate_skipped_unit <= following.max_skipped_planes;
        }
        const uint32_t at = n_kept + block_exclusive_count(kept, scratch, n_here);
        if (kept) following.candidates[at] = candidate;
        following.n_tracks = min_of(following.n_tracks + n_new, following.max_tracks);
        n_kept += n_here;
    }
    following.n_candidates = n_kept;
}

/// A triplet becomes seed `seed` and candidate `candidate`.
__device__ void put_seed(track_following& following, uint32_t seed, uint32_t candidate, uint32_t first, uint32_t middle,
                         uint32_t third)
{
    uint16_t* const hits = following.seed_hits + 4u * seed;
    hits[0] = static_cast<uint16_t>(first);
    hits[1] = static_cast<uint16_t>(middle);
    hits[2] = static_cast<uint16_t>(third);
    hits[3] = seed_left;
    following.candidates[candidate] = {middle | third << 16, seed};
}

/// The scratch of an event for the hits of planes: planes_width words per place.
constexpr uint32_t planes_width = 17;
template <typename Parameters>
__device__ float* planes_of_event(const Parameters& p, uint32_t event)
{
    return p.scratch.planes + planes_width * p.scratch.first(event);
}

/// The state of an event before its first pair.
template <typename Parameters>
__device__ track_following start_following(const Parameters& p, uint32_t event)
{
    const uint32_t first_hit = p.velo_hits.first(event);
    const uint32_t first_track = p.velo_tracks.first(event);
    return {p.velo_hits.x + first_hit,
            p.velo_hits.y + first_hit,
            p.velo_hits.z + first_hit,
            p.velo_hits.phi + first_hit,
            p.velo_hits.id + first_hit,
            p.velo_hits.module_pair_offset + event * (n_velo_module_pairs + 1u),
            p.velo_hits.used + first_hit,
            p.velo_tracks.hits + first_track * max_velo_track_hits,
            p.velo_tracks.hit_count + first_track,
            p.velo_seeds.hits + 4u * first_hit,
            reinterpret_cast<track_candidate*>(p.scratch.candidates) + first_hit,
            p.scratch.found + first_hit,
            p.scratch.hit_bid + first_hit,
            p.max_seed_scatter,
            p.max_follow_scatter,
            p.max_shared_scatter,
            p.max_seed_slope * p.max_seed_slope,
            p.max_displaced_slope * p.max_displaced_slope,
            static_cast<int32_t>(p.seed_phi_tolerance),
            static_cast<int32_t>(p.displaced_phi_tolerance),
            p.plane_kind,
            p.plane_kind == modules_as_planes ? 2u * p.max_skipped_pairs + 1u : p.max_skipped_pairs,
            (first_hit + p.velo_clusters.bound[event]) / 2u - first_track,
            p.velo_clusters.count[event],
            min_of(max_of(p.seed_partners, 1u), max_seed_partners),
            0,
            0,
            0,
            false};
}

}  // namespace hlt
