// Rings by Ptolemy's theorem ("Almagest"; G. Lamanna et al., "Fast algorithm for real-time rings reconstruction",
// DESY-PROC-2014-05/42, section 4).
//
// A triplet is three hits at one end of an axis. A fourth hit D lies on their circle if the products of the opposite
// sides of the quadrilateral fulfil Ptolemy's theorem. Its form here needs no order of the four points: of
// AB CD, AC BD and AD BC, the largest equals the sum of the others for points on a circle or on a line, and is smaller
// for all other points. The hits that pass are fitted, and the hits near the circle are fitted again.
//
// The test has no square roots. With the squares l <= m <= h of the products, the sum of the smaller ones is at most
// 1 + tolerance times the largest one if 2 sqrt(l m) <= (1 + tolerance)^2 h - l - m. The right side may be below 0, but
// then its square is below 4 l m, too: m <= h, so l is above its magnitude, and m is not smaller. So the squares of
// both sides decide.
// `Lanes` is a float or a vector of floats: a triplet in each lane (circle.cuh).
#pragma once

#include "na62/rich/circle.cuh"

namespace hlt {

/// Constants of the search, by the names of search_rings.py.
struct triplet_cuts {
    float min_distance, tolerance, first_window, window, min_spread;
    uint32_t method, refits;
};

template <typename Lanes>
struct lane_point {
    Lanes x, y, projection;

    /// Become a point that lies further along the axis. The maximum keeps the comparison off the chain from hit to hit.
    __device__ __forceinline__ void take_further(const Lanes& of_x, const Lanes& of_y, const Lanes& along)
    {
        const auto further = along > projection;
        x = further ? of_x : x;
        y = further ? of_y : y;
        projection = larger_of(along, projection);
    }
};

/// Square of the distance.
template <typename Lanes>
__device__ __forceinline__ Lanes square_from(const Lanes& x, const Lanes& y, const lane_point<Lanes>& point)
{
    const Lanes dx = x - point.x, dy = y - point.y;
    return dx * dx + dy * dy;
}

/// No projection of a hit is this small: coordinates are below a metre.
constexpr float no_projection = -1e30f;

template <typename Lanes>
struct triplet {
    lane_point<Lanes> a, b, c;
};

/// The three hits that lie furthest along an axis and at least min_distance apart. The `skipped` furthest ones do not
/// count: one of them may be noise.
template <typename Lanes>
__device__ __forceinline__ triplet<Lanes> find_triplet(const float* hit_x, const float* hit_y, uint32_t n,
                                                       const Lanes& axis_x, const Lanes& axis_y, float min_distance,
                                                       uint32_t skipped)
{
    const Lanes zero{}, least = zero + min_distance * min_distance, none = zero + no_projection;
    triplet<Lanes> found;
    Lanes end = zero - no_projection;
    for (uint32_t skip = 0; skip <= skipped; ++skip) {
        if (skip != 0) end = found.a.projection;
        found.a = {zero, zero, none};
        for (uint32_t k = 0; k < n; ++k) {
            const Lanes x = zero + hit_x[k], y = zero + hit_y[k], along = x * axis_x + y * axis_y;
            found.a.take_further(x, y, along < end ? along : none);
        }
    }
    found.b = found.c = {zero, zero, none};
    for (uint32_t k = 0; k < n; ++k) {
        const Lanes x = zero + hit_x[k], y = zero + hit_y[k], along = x * axis_x + y * axis_y;
        const Lanes ax = x - found.a.x, ay = y - found.a.y;
        const auto apart = (along < end) & (ax * ax + ay * ay >= least);
        found.b.take_further(x, y, apart ? along : none);
    }
    for (uint32_t k = 0; k < n; ++k) {
        const Lanes x = zero + hit_x[k], y = zero + hit_y[k], along = x * axis_x + y * axis_y;
        const Lanes ax = x - found.a.x, ay = y - found.a.y, bx = x - found.b.x, by = y - found.b.y;
        const auto apart = (along < end) & (ax * ax + ay * ay >= least) & (bx * bx + by * by >= least);
        found.c.take_further(x, y, apart ? along : none);
    }
    return found;
}

/// The ring of a triplet in each lane.
template <typename Lanes>
__device__ __forceinline__ fitted_ring<Lanes> ring_of_triplet(const float* hit_x, const float* hit_y, uint32_t n,
                                                              const Lanes& axis_x, const Lanes& axis_y,
                                                              const triplet_cuts& cuts, uint32_t skipped)
{
    const Lanes zero{};
    const triplet<Lanes> of = find_triplet(hit_x, hit_y, n, axis_x, axis_y, cuts.min_distance, skipped);
    const auto complete = of.c.projection > zero + no_projection;
    const Lanes ab = square_from(of.a.x, of.a.y, of.b), ac = square_from(of.a.x, of.a.y, of.c),
                bc = square_from(of.b.x, of.b.y, of.c);
    const float most_of_largest = (1.f + cuts.tolerance) * (1.f + cuts.tolerance);
    lane_mask<Lanes> taken[rich_max_hits];
    circle_sums<Lanes> sums;
    sums.clear();
    for (uint32_t k = 0; k < n; ++k) {
        const Lanes x = zero + hit_x[k], y = zero + hit_y[k];
        const Lanes p1 = ab * square_from(x, y, of.c), p2 = ac * square_from(x, y, of.b),
                    p3 = bc * square_from(x, y, of.a);
        const Lanes larger = larger_of(p1, p2), smaller = smaller_of(p1, p2);
        const Lanes largest = larger_of(larger, p3), smallest = smaller_of(smaller, p3);
        const Lanes middle = larger_of(smaller, smaller_of(larger, p3));
        const Lanes most = most_of_largest * largest - smallest - middle;
        taken[k] = 4.f * smallest * middle <= most * most;
        sums.add_point(x, y, taken[k]);
    }
    fitted_ring<Lanes> ring{};
    ring.hits = sums.n;
    ring.line = fit_taken(hit_x, hit_y, n, taken, sums, cuts.method, cuts.min_spread);
    ring.line.valid = complete ? ring.line.valid : zero;
    for (uint32_t pass = 0; pass < cuts.refits; ++pass) {
        const lane_mask<Lanes> valid = ring.line.valid > zero;
        if (!any_lane(valid)) return ring;
        const float window = pass == 0 ? cuts.first_window : cuts.window;
        const lane_mask<Lanes> changed = take_near<true>(hit_x, hit_y, n, ring.line, window, taken, sums);
        if (pass != 0) ring.is_stable = changed == lane_mask<Lanes>{};
        // The same hits give the same circle.
        if (!any_lane(changed & valid)) continue;
        ring.hits = sums.n;
        ring.line = fit_taken(hit_x, hit_y, n, taken, sums, cuts.method, cuts.min_spread);
        ring.line.valid = valid ? ring.line.valid : zero;
    }
    ring.squares = squares_of_taken(hit_x, hit_y, n, ring.line, taken);
    return ring;
}

}  // namespace hlt
