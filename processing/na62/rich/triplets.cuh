// Rings by Ptolemy's theorem ("Almagest"; G. Lamanna et al., "Fast algorithm for real-time rings reconstruction",
// DESY-PROC-2014-05/42, section 4).
//
// A triplet is three hits at one end of an axis. A fourth hit D lies on their circle if the products of the opposite
// sides of the quadrilateral fulfil Ptolemy's theorem. Its form here needs no order of the four points: of
// AB CD, AC BD and AD BC, the largest equals the sum of the others for points on a circle or on a line, and is smaller
// for all other points. The hits that pass are fitted, and the hits near the circle are fitted again.
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
};

template <typename Lanes>
__device__ __forceinline__ Lanes distance_of(const Lanes& x, const Lanes& y, const lane_point<Lanes>& point)
{
    const Lanes dx = x - point.x, dy = y - point.y;
    return square_root(dx * dx + dy * dy);
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
    const Lanes zero{}, least = zero + min_distance * min_distance;
    triplet<Lanes> found;
    Lanes end = zero - no_projection;
    for (uint32_t skip = 0; skip <= skipped; ++skip) {
        if (skip != 0) end = found.a.projection;
        found.a = {zero, zero, zero + no_projection};
        for (uint32_t k = 0; k < n; ++k) {
            const Lanes x = zero + hit_x[k], y = zero + hit_y[k], along = x * axis_x + y * axis_y;
            const auto further = (along > found.a.projection) & (along < end);
            found.a = {further ? x : found.a.x, further ? y : found.a.y, further ? along : found.a.projection};
        }
    }
    found.b = found.c = {zero, zero, zero + no_projection};
    for (uint32_t k = 0; k < n; ++k) {
        const Lanes x = zero + hit_x[k], y = zero + hit_y[k], along = x * axis_x + y * axis_y;
        const Lanes ax = x - found.a.x, ay = y - found.a.y;
        const auto further = (along > found.b.projection) & (along < end) & (ax * ax + ay * ay >= least);
        found.b = {further ? x : found.b.x, further ? y : found.b.y, further ? along : found.b.projection};
    }
    for (uint32_t k = 0; k < n; ++k) {
        const Lanes x = zero + hit_x[k], y = zero + hit_y[k], along = x * axis_x + y * axis_y;
        const Lanes ax = x - found.a.x, ay = y - found.a.y, bx = x - found.b.x, by = y - found.b.y;
        const auto further =
            (along > found.c.projection) & (along < end) & (ax * ax + ay * ay >= least) & (bx * bx + by * by >= least);
        found.c = {further ? x : found.c.x, further ? y : found.c.y, further ? along : found.c.projection};
    }
    return found;
}

/// The ring of a triplet in each lane.
template <typename Lanes>
__device__ __forceinline__ fitted_ring<Lanes> ring_of_triplet(const float* hit_x, const float* hit_y, uint32_t n,
                                                              const Lanes& axis_x, const Lanes& axis_y,
                                                              const triplet_cuts& cuts, uint32_t skipped)
{
    const Lanes zero{}, one = zero + 1.f;
    const triplet<Lanes> of = find_triplet(hit_x, hit_y, n, axis_x, axis_y, cuts.min_distance, skipped);
    const auto complete = of.c.projection > zero + no_projection;
    const Lanes ab = distance_of(of.a.x, of.a.y, of.b), ac = distance_of(of.a.x, of.a.y, of.c),
                bc = distance_of(of.b.x, of.b.y, of.c);
    Lanes taken[rich_max_hits];
    for (uint32_t k = 0; k < n; ++k) {
        const Lanes x = zero + hit_x[k], y = zero + hit_y[k];
        const Lanes p1 = ab * distance_of(x, y, of.c), p2 = ac * distance_of(x, y, of.b),
                    p3 = bc * distance_of(x, y, of.a);
        const Lanes larger = p1 < p2 ? p2 : p1, largest = larger < p3 ? p3 : larger;
        taken[k] = p1 + p2 + p3 - 2.f * largest <= cuts.tolerance * largest ? one : zero;
    }
    fitted_ring<Lanes> ring;
    ring.line = fit_taken(hit_x, hit_y, n, taken, cuts.method, cuts.min_spread, ring.hits);
    ring.line.valid = complete ? ring.line.valid : zero;
    for (uint32_t pass = 0; pass < cuts.refits; ++pass) {
        const float window = pass == 0 ? cuts.first_window : cuts.window;
        ring.line = refit_circle(hit_x, hit_y, n, ring.line, window, cuts.method, cuts.min_spread, taken, ring.hits);
    }
    ring.squares = squares_of_taken(hit_x, hit_y, n, ring.line, taken);
    return ring;
}

}  // namespace hlt
