// Which of the rings of the triplets is taken, what it takes away, and the last fit of all rings of an event.
#pragma once

#include "na62/rich/triplets.cuh"

namespace hlt {

/// Passes over the triplets of an event. A pass with a ring takes its hits away; one without ends the search or skips a
/// hit more, so an event needs a few.
constexpr uint32_t rich_max_passes = 64;

/// Hits that no ring has yet, and the rings so far. The memory of one event.
struct ring_search {
    search_hits hits;
    hit_frame frame;
    uint32_t n_rings;
    uint32_t skipped;   // hits at the end of each axis that no triplet takes
    uint32_t left_out;  // 1: a ring without a place in the list, or passes that ended with free hits
    fitted_ring<float> of_triplets[8];
    circle<float> rings[rich_max_rings];
};

/// The components of the axis of a triplet: both ends of the horizontal and vertical axes, then of the diagonals.
__device__ __forceinline__ constexpr float axis_x_of(uint32_t triplet)
{
    const float along = triplet < 4u ? 1.f : 0.70710678f;
    return (triplet == 2u || triplet == 3u) ? 0.f : ((triplet & 1u) == 0u ? along : -along);
}

__device__ __forceinline__ constexpr float axis_y_of(uint32_t triplet)
{
    if (triplet < 2u) return 0.f;
    const float along = triplet < 4u ? 1.f : 0.70710678f;
    const bool is_positive = triplet < 6u ? (triplet & 1u) == 0u : (triplet & 1u) != 0u;
    return is_positive ? along : -along;
}

template <typename Parameters>
__device__ ring_cuts cuts_of(const Parameters& p)
{
    return {p.min_distance, p.tolerance, p.first_window, p.window, p.min_spread, p.method, p.refits};
}

/// Whether the ring in each lane may be taken.
template <typename Parameters, typename Lanes>
__device__ __forceinline__ lane_mask<Lanes> is_good_ring(const Parameters& p, const fitted_ring<Lanes>& ring)
{
    const Lanes zero{};
    return (ring.line.valid > zero) & (ring.hits >= zero + static_cast<float>(p.min_hits)) &
           (ring.line.radius >= zero + p.min_radius) & (ring.line.radius <= zero + p.max_radius) &
           (ring.squares <= p.max_mean_square * ring.hits);
}

/// Whether triplets that skip more hits may find a ring where the others have found none.
template <typename Parameters>
__device__ bool skips_more(const Parameters& p, ring_search& search)
{
    return ++search.skipped <= p.max_skipped;
}

/// Whether the circle in each lane is near another one: centre and radius together.
template <typename Parameters, typename Lanes>
__device__ __forceinline__ lane_mask<Lanes> is_near(const Parameters& p, const circle<Lanes>& ring, float x, float y,
                                                    float radius)
{
    const Lanes dx = ring.x - x, dy = ring.y - y, dr = ring.radius - radius;
    return dx * dx + dy * dy + dr * dr < Lanes{} + p.merge_distance * p.merge_distance;
}

/// Take a ring, or skip a hit more if `is_good` is false. A ring near an earlier one is merged with it: it only takes
/// its hits away. remove_hits(line): takes the hits away. Returns false if the search has ended.
template <typename Parameters, typename RemoveHits>
__device__ __forceinline__ bool take_ring(const Parameters& p, ring_search& search, bool is_good,
                                          const circle<float>& line, const RemoveHits& remove_hits)
{
    if (!is_good) return skips_more(p, search);
    bool is_new = true;
    for (uint32_t r = 0; r < search.n_rings; ++r)
        if (is_near(p, line, search.rings[r].x, search.rings[r].y, search.rings[r].radius)) is_new = false;
    if (is_new && search.n_rings == rich_max_rings) {
        search.left_out = 1;
        return false;
    }
    if (is_new) search.rings[search.n_rings++] = line;
    remove_hits(line);
    search.skipped = 0;
    return search.hits.n >= p.min_hits;
}

/// Write the rings of an event after the last fit. Two rings that this fit has made one are written once.
template <typename Parameters>
__device__ void write_rings(const Parameters& p, uint32_t event, const ring_search& search,
                            const fitted_ring<float>* rings)
{
    uint32_t n = 0;
    const float per_square = 1.f / (p.resolution * p.resolution);
    for (uint32_t r = 0; r < search.n_rings; ++r) {
        const fitted_ring<float>& ring = rings[r];
        if (!is_good_ring(p, ring)) continue;
        bool is_new = true;
        for (uint32_t other = 0; other < n; ++other) {
            const auto& written = p.rings.ring[p.rings.first(event) + other];
            if (is_near(p, ring.line, written.x, written.y, written.radius)) is_new = false;
        }
        if (!is_new) continue;
        p.rings.ring[p.rings.first(event) + n++] = {ring.line.x, ring.line.y, ring.line.radius,
                                                    ring.squares * per_square, static_cast<uint32_t>(ring.hits)};
    }
    p.rings.count[event] = n;
    if (search.left_out != 0) p.events.flags[event] |= too_many_rings;
}

}  // namespace hlt
