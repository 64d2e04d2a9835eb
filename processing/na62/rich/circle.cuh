// Circles through points: linear least squares, Taubin and Pratt, from the same moments.
//
// Functions are templates: `Lanes` is a float, or a vector of floats with a circle in each lane. Sums run over the hits
// in their order, so one circle gives the same bits in both. The moments are about the mean of the points, in units of
// their mean square distance from it; a single equation in x then gives each fit (N. Chernov, "Circular and Linear
// Regression", CRC Press 2010, sections 5.4 to 5.8): x = 0 is linear least squares (Kasa), the root near 0 of a
// polynomial of third order is Taubin's fit, of fourth order Pratt's.
#pragma once

#include "na62/rich/generated/rich_types.h"
#include "na62/rich/ring_lanes.cuh"

namespace hlt {

/// Newton steps from x = 0: the root is small for points near a circle, and each step doubles the correct digits.
constexpr uint32_t circle_newton_steps = 5;
/// A root moves no more after a step below this: the next one would be below what rounding leaves of it.
constexpr float circle_final_step = 1e-7f;
/// The fit has converged if the last step is below this part of the spread plus what rounding leaves. The steps of a
/// blob of points are slower: it has no circle.
constexpr float circle_last_step = 1e-3f, circle_rounding = 1e-5f;
/// Centres are at most the inverse of this from the mean, in units of the spread of the points: beyond, float32 has no
/// correct digit of them.
constexpr float circle_min_determinant = 1e-6f;

/// A circle. `valid` is 0 in lanes whose points do not define one.
template <typename Lanes>
struct circle {
    Lanes x, y, radius, valid;
};

/// Sums over points: first of their coordinates, then of products about their mean.
template <typename Lanes>
struct circle_sums {
    Lanes n, x, y;
    Lanes xx, xy, yy, xz, yz, zz;

    __device__ __forceinline__ void clear() { n = x = y = xx = xy = yy = xz = yz = zz = Lanes{}; }

    template <typename Taken>
    __device__ __forceinline__ void add_point(const Lanes& hit_x, const Lanes& hit_y, const Taken& taken)
    {
        const Lanes zero{};
        n += taken ? zero + 1.f : zero;
        x += taken ? hit_x : zero;
        y += taken ? hit_y : zero;
    }

    /// Turn the sums of coordinates into the mean.
    __device__ __forceinline__ void finish_mean()
    {
        const Lanes one = Lanes{} + 1.f;
        const Lanes points = n < one ? one : n;
        x /= points;
        y /= points;
    }

    template <typename Taken>
    __device__ __forceinline__ void add_products(const Lanes& hit_x, const Lanes& hit_y, const Taken& taken)
    {
        const Lanes zero{};
        const Lanes u = taken ? hit_x - x : zero, v = taken ? hit_y - y : zero;
        const Lanes uu = u * u, vv = v * v;
        const Lanes z = uu + vv;
        xx += uu;
        xy += u * v;
        yy += vv;
        xz += u * z;
        yz += v * z;
        zz += z * z;
    }
};

/// The circle of finished sums. Not valid: fewer than three points, equal points, points on a line, and points for
/// which the fit does not converge.
template <typename Lanes>
__device__ __forceinline__ circle<Lanes> solve_circle(const circle_sums<Lanes>& sums, uint32_t method, float min_spread)
{
    const Lanes zero{}, one = zero + 1.f;
    const Lanes points = sums.n < one ? one : sums.n;
    const Lanes mean_square = (sums.xx + sums.yy) / points;
    const auto apart = mean_square >= zero + min_mean_square;
    const Lanes unit = apart ? mean_square : one;
    const Lanes length = square_root(unit);
    const Lanes of_square = one / (points * unit), of_cube = of_square / length, of_fourth = of_square / unit;
    const Lanes xx = sums.xx * of_square, xy = sums.xy * of_square, yy = sums.yy * of_square;
    const Lanes xz = sums.xz * of_cube, yz = sums.yz * of_cube, zz = sums.zz * of_fourth;
    const Lanes spread = xx * yy - xy * xy;
    const Lanes variance = zz - 1.f;

    const Lanes a0 = xz * (xz * yy - yz * xy) + yz * (yz * xx - xz * xy) - variance * spread;
    const Lanes a1 = variance + 4.f * spread - xz * xz - yz * yz;
    const float is_pratt = method == fit_pratt ? 1.f : 0.f;
    const float a3 = method == fit_taubin ? 4.f : 0.f, a4 = 4.f * is_pratt;
    const Lanes a2 = 4.f * is_pratt * spread - 3.f - zz;
    // Lanes that have no circle anyway do not count as open.
    const auto may_have_circle = (sums.n >= zero + 3.f) & apart & (spread >= zero + min_spread);
    lane_mask<Lanes> open = may_have_circle;
    Lanes root = zero, last_step = zero;
    if (method != fit_least_squares) {
        for (uint32_t step = 0; step < circle_newton_steps && any_lane(open); ++step) {
            const Lanes value = a0 + root * (a1 + root * (a2 + root * (a3 + root * a4)));
            const Lanes slope = a1 + root * (2.f * a2 + root * (3.f * a3 + root * (4.f * a4)));
            const Lanes next = root - value / (slope == zero ? one : slope);
            // Rounding may leave a root below 0 for points on a circle.
            const Lanes at_least_zero = next < zero ? zero : next;
            last_step = open ? magnitude(at_least_zero - root) : last_step;
            root = open ? at_least_zero : root;
            open &= last_step > zero + circle_final_step;
        }
    }
    const Lanes determinant = root * root - root + spread;
    const auto converged = last_step <= circle_last_step * spread + circle_rounding;
    const auto curved = may_have_circle & converged & (determinant >= zero + circle_min_determinant);
    const Lanes twice = curved ? 2.f * determinant : one;
    const Lanes x = (xz * (yy - root) - yz * xy) / twice, y = (yz * (xx - root) - xz * xy) / twice;
    const Lanes square = x * x + y * y + 1.f + 2.f * is_pratt * root;
    circle<Lanes> found;
    found.x = sums.x + x * length;
    found.y = sums.y + y * length;
    found.radius = length * square_root(square);
    found.valid = curved ? one : zero;
    return found;
}

/// Distance of a point from the line of a circle, with its sign.
template <typename Lanes>
__device__ __forceinline__ Lanes residual(const circle<Lanes>& ring, const Lanes& hit_x, const Lanes& hit_y)
{
    const Lanes dx = hit_x - ring.x, dy = hit_y - ring.y;
    return square_root(dx * dx + dy * dy) - ring.radius;
}

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
    __device__ __forceinline__ lane_mask<Lanes> has(const Lanes& hit_x, const Lanes& hit_y) const
    {
        const Lanes dx = hit_x - x, dy = hit_y - y, square = dx * dx + dy * dy;
        return (square >= least) & (square <= most);
    }
};

/// A ring that is made of hits: its circle, the number of hits and the sum of squared residuals.
template <typename Lanes>
struct fitted_ring {
    circle<Lanes> line;
    Lanes hits, squares;
    lane_mask<Lanes> is_stable;  // another refit with the same hits and window gives the same ring
};

/// The circle of the hits in `taken`, given the sums of their coordinates.
template <typename Lanes>
__device__ __forceinline__ circle<Lanes> fit_taken(const float* hit_x, const float* hit_y, uint32_t n,
                                                   const lane_mask<Lanes>* taken, circle_sums<Lanes> sums,
                                                   uint32_t method, float min_spread)
{
    const Lanes zero{};
    sums.finish_mean();
    for (uint32_t k = 0; k < n; ++k) sums.add_products(zero + hit_x[k], zero + hit_y[k], taken[k]);
    return solve_circle(sums, method, min_spread);
}

/// Take the hits within `window` of a circle, and sum up their coordinates. Returns in which lanes they differ from
/// those that were taken before; compares: `taken` has these.
template <bool compares, typename Lanes>
__device__ __forceinline__ lane_mask<Lanes> take_near(const float* hit_x, const float* hit_y, uint32_t n,
                                                      const circle<Lanes>& line, float window, lane_mask<Lanes>* taken,
                                                      circle_sums<Lanes>& sums)
{
    const Lanes zero{};
    const ring_window<Lanes> near_line(line, window);
    lane_mask<Lanes> changed{};
    sums.clear();
    for (uint32_t k = 0; k < n; ++k) {
        const Lanes x = zero + hit_x[k], y = zero + hit_y[k];
        const lane_mask<Lanes> is_near = near_line.has(x, y);
        if (compares) changed |= is_near ^ taken[k];
        taken[k] = is_near;
        sums.add_point(x, y, is_near);
    }
    return changed;
}

/// Sum of the squared residuals of the hits in `taken`.
template <typename Lanes>
__device__ __forceinline__ Lanes squares_of_taken(const float* hit_x, const float* hit_y, uint32_t n,
                                                  const circle<Lanes>& line, const lane_mask<Lanes>* taken)
{
    const Lanes zero{};
    Lanes squares = zero;
    for (uint32_t k = 0; k < n; ++k) {
        const Lanes distance = residual(line, zero + hit_x[k], zero + hit_y[k]);
        squares += taken[k] ? distance * distance : zero;
    }
    return squares;
}

/// The circle of the hits within `window` of an earlier one, and how well they agree with it.
template <typename Lanes>
__device__ __forceinline__ fitted_ring<Lanes> refit_ring(const float* hit_x, const float* hit_y, uint32_t n,
                                                         const circle<Lanes>& before, float window, uint32_t method,
                                                         float min_spread)
{
    const Lanes zero{};
    lane_mask<Lanes> taken[rich_max_hits];
    circle_sums<Lanes> sums;
    fitted_ring<Lanes> found{};
    take_near<false>(hit_x, hit_y, n, before, window, taken, sums);
    found.hits = sums.n;
    found.line = fit_taken(hit_x, hit_y, n, taken, sums, method, min_spread);
    found.line.valid = before.valid > zero ? found.line.valid : zero;
    found.squares = squares_of_taken(hit_x, hit_y, n, found.line, taken);
    return found;
}

}  // namespace hlt
