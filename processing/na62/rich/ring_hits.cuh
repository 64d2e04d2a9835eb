// Rings of hits: the hits near a circle, and their fit.
#pragma once

#include "na62/rich/hit_sums.cuh"

namespace hlt {

/// Constants of the search, by the names of search_rings.py.
struct ring_cuts {
    float min_distance, tolerance, first_window, window, min_spread;
    uint32_t method, refits;
};

/// A ring that is made of hits: its circle, the number of hits and the sum of squared distances from it.
template <typename Lanes>
struct fitted_ring {
    circle<Lanes> line;
    Lanes hits, squares;
    Lanes is_stable;  // not 0: another refit with the same window gives the same ring
};

/// The points within `window` of a circle. Squares of distances are compared, so a point needs no square root.
template <typename Lanes>
struct ring_window {
    Lanes x, y, least, most;

    __device__ __forceinline__ ring_window(const circle<Lanes>& line, float window) : x(line.x), y(line.y)
    {
        const Lanes inner = line.radius - window, outer = line.radius + window;
        // A window that reaches beyond the centre has all points inside.
        least = inner > Lanes{} ? inner * inner : Lanes{};
        most = outer * outer;
    }
    __device__ __forceinline__ step_mask<Lanes> has(const Lanes& hit_x, const Lanes& hit_y) const
    {
        const Lanes dx = hit_x - x, dy = hit_y - y, square = dx * dx + dy * dy;
        return and_at_most(at_least(square, least), square, most);
    }
};

/// The sums of the hits within `window` of the circle in each lane.
template <typename Lanes>
__device__ __forceinline__ ring_sums<Lanes> sums_near(const search_hits& hits, const circle<Lanes>& line, float window)
{
    const ring_window<Lanes> near_line(line, window);
    ring_sums<Lanes> sums;
    sums.clear();
    for (uint32_t step = 0; step < steps_of<Lanes>(hits.n); ++step) {
        Lanes x, y;
        load_step(x, hits.x, step);
        load_step(y, hits.y, step);
        sums.add(hits, step, near_line.has(x, y));
    }
    sums.join();
    return sums;
}

/// Sum of the squares of (d^2 - r^2) / 2r for the distances d of the hits from the centre: of their distances from the
/// ring, but for terms of second order. The moments give it without another loop.
template <typename Lanes>
__device__ __forceinline__ Lanes squares_of(const circle_moments<Lanes>& of, const circle<Lanes>& line)
{
    const Lanes zero{}, one = zero + 1.f;
    const Lanes x = line.x - of.x, y = line.y - of.y, square = line.radius * line.radius;
    const Lanes inside = of.xx + of.yy + (x * x + y * y - square);
    const Lanes of_x = x * of.xx + 2.f * (y * of.xy) - of.xz, of_y = y * of.yy - of.yz;
    const Lanes mean = of.zz + inside * inside + 4.f * (x * of_x + y * of_y);
    return larger_of(mean, zero) * of.n / (4.f * larger_of(square, one));
}

/// The circle of the hits in each lane where there was one before, and how well they agree with it.
template <typename Lanes>
__device__ __forceinline__ fitted_ring<Lanes> fit_hits(const circle_moments<Lanes>& of, const Lanes& was_valid,
                                                       const ring_cuts& cuts)
{
    fitted_ring<Lanes> ring;
    ring.hits = of.n;
    ring.line = solve_circle(of, cuts.method, cuts.min_spread);
    ring.line.valid = was_valid * ring.line.valid;
    ring.squares = ring.is_stable = Lanes{};
    return ring;
}

/// The circle of the hits within `window` of an earlier one, and how well they agree with it.
template <typename Lanes>
__device__ __forceinline__ fitted_ring<Lanes> refit_ring(const search_hits& hits, const hit_frame& frame,
                                                         const circle<Lanes>& before, const ring_cuts& cuts)
{
    const circle_moments<Lanes> of = moments_of(sums_near(hits, before, cuts.window), frame);
    fitted_ring<Lanes> ring = fit_hits(of, before.valid, cuts);
    ring.squares = squares_of(of, ring.line);
    return ring;
}

}  // namespace hlt
