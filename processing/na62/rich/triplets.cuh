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
// `Lanes` is a float or a vector of floats with a triplet in each lane or in two (hit_lanes.cuh).
#pragma once

#include "na62/rich/ring_hits.cuh"

namespace hlt {

/// The hit of a triplet that lies furthest along the axis has the largest key: the projection in steps of 2^-11 mm, and
/// in the lowest 6 bits 63 minus its place, so that of equal projections the first hit is taken. Coordinates are below
/// 1 m, so projections plus this offset are between 4096 and 8192, and the bits of the sum rise with them; 0 is no key.
constexpr float projection_offset = 6144.f;
constexpr uint32_t place_bits = 6;
constexpr int32_t last_place = (1 << place_bits) - 1;
static_assert(rich_max_hits == 1u << place_bits);

template <typename Lanes>
struct lane_point {
    Lanes x, y;

    __device__ __forceinline__ void take(const search_hits& hits, const ints_of<Lanes>& key)
    {
        const ints_of<Lanes> place = last_place - (key & last_place);
        x = value_at(hits.x, place);
        y = value_at(hits.y, place);
    }
};

/// Square of the distance.
template <typename Lanes>
__device__ __forceinline__ Lanes square_from(const Lanes& x, const Lanes& y, const lane_point<Lanes>& point)
{
    const Lanes dx = x - point.x, dy = y - point.y;
    return dx * dx + dy * dy;
}

template <typename Lanes>
struct triplet {
    lane_point<Lanes> a, b, c;
    ints_of<Lanes> last_key;  // 0: incomplete
};

/// The three hits that lie furthest along an axis and at least min_distance apart. The `skipped` furthest ones do not
/// count: one of them may be noise.
template <typename Lanes>
__device__ __forceinline__ triplet<Lanes> find_triplet(const search_hits& hits, const Lanes& axis_x,
                                                       const Lanes& axis_y, float min_distance, uint32_t skipped)
{
    using ints = ints_of<Lanes>;
    const uint32_t steps = steps_of<Lanes>(hits.n);
    const Lanes least = Lanes{} + min_distance * min_distance;
    ints keys[rich_max_hits / lanes_of<Lanes>::ring_step];
    ints place, most{};
    place_of_first_step(place);
    place = last_place - place;
    for (uint32_t step = 0; step < steps; ++step) {
        Lanes x, y;
        load_step(x, hits.x, step);
        load_step(y, hits.y, step);
        const Lanes along = x * axis_x + y * axis_y;
        const ints key = shifted_bits(along + projection_offset, place_bits) | place;
        keys[step] = kept_where(at_least(along, along), key);
        place -= static_cast<int32_t>(lanes_of<Lanes>::ring_step);
        most = larger_int(most, keys[step]);
    }
    most = joined_most(most);
    for (uint32_t skip = 0; skip < skipped; ++skip) {
        ints next{};
        for (uint32_t step = 0; step < steps; ++step) {
            keys[step] = kept_where(differs(keys[step], most), keys[step]);
            next = larger_int(next, keys[step]);
        }
        most = joined_most(next);
    }
    triplet<Lanes> found;
    found.a.take(hits, most);
    most = ints{};
    for (uint32_t step = 0; step < steps; ++step) {
        Lanes x, y;
        load_step(x, hits.x, step);
        load_step(y, hits.y, step);
        keys[step] = kept_where(at_least(square_from(x, y, found.a), least), keys[step]);
        most = larger_int(most, keys[step]);
    }
    most = joined_most(most);
    found.b.take(hits, most);
    most = ints{};
    for (uint32_t step = 0; step < steps; ++step) {
        Lanes x, y;
        load_step(x, hits.x, step);
        load_step(y, hits.y, step);
        most = larger_int(most, kept_where(at_least(square_from(x, y, found.b), least), keys[step]));
    }
    most = joined_most(most);
    found.c.take(hits, most);
    found.last_key = most;
    return found;
}

/// The sums of the hits on the circle of the triplet in each lane.
template <typename Lanes>
__device__ __forceinline__ ring_sums<Lanes> sums_on(const search_hits& hits, const triplet<Lanes>& of, float tolerance)
{
    const Lanes ab = square_from(of.a.x, of.a.y, of.b), ac = square_from(of.a.x, of.a.y, of.c),
                bc = square_from(of.b.x, of.b.y, of.c);
    const float most_of_largest = (1.f + tolerance) * (1.f + tolerance);
    ring_sums<Lanes> sums;
    sums.clear();
    for (uint32_t step = 0; step < steps_of<Lanes>(hits.n); ++step) {
        Lanes x, y;
        load_step(x, hits.x, step);
        load_step(y, hits.y, step);
        const Lanes p1 = ab * square_from(x, y, of.c), p2 = ac * square_from(x, y, of.b),
                    p3 = bc * square_from(x, y, of.a);
        const Lanes larger = larger_of(p1, p2), smaller = smaller_of(p1, p2);
        const Lanes largest = larger_of(larger, p3), smallest = smaller_of(smaller, p3);
        const Lanes middle = larger_of(smaller, smaller_of(larger, p3));
        const Lanes most = most_of_largest * largest - smallest - middle;
        sums.add(hits, step, at_most(4.f * smallest * middle, most * most));
    }
    sums.join();
    return sums;
}

/// The ring of a triplet in each lane.
template <typename Lanes>
__device__ __forceinline__ fitted_ring<Lanes> ring_of_triplet(const search_hits& hits, const hit_frame& frame,
                                                              const Lanes& axis_x, const Lanes& axis_y,
                                                              const ring_cuts& cuts, uint32_t skipped)
{
    const Lanes zero{}, one = zero + 1.f;
    const triplet<Lanes> of = find_triplet(hits, axis_x, axis_y, cuts.min_distance, skipped);
    ring_sums<Lanes> sums = sums_on(hits, of, cuts.tolerance);
    circle_moments<Lanes> moments = moments_of(sums, frame);
    fitted_ring<Lanes> ring = fit_hits(moments, kept_where(differs(of.last_key, ints_of<Lanes>{}), one), cuts);
    for (uint32_t pass = 0; pass < cuts.refits; ++pass) {
        const step_mask<Lanes> valid = at_least(ring.line.valid, one);
        if (!any_ring(valid)) return ring;
        const ring_sums<Lanes> next = sums_near(hits, ring.line, pass == 0 ? cuts.first_window : cuts.window);
        const step_mask<Lanes> changed = sums.changed_to(next);
        sums = next;
        // The same hits give the same circle.
        if (any_ring(static_cast<step_mask<Lanes>>(changed & valid))) {
            moments = moments_of(sums, frame);
            ring = fit_hits(moments, ring.line.valid, cuts);
        }
        if (pass != 0) ring.is_stable = one - kept_where(changed, one);
    }
    ring.squares = squares_of(moments, ring.line);
    return ring;
}

}  // namespace hlt
