// Circles through points: linear least squares, Taubin and Pratt, from the same moments.
//
// Functions are templates: `Lanes` is a float, or a vector of floats with a circle in each lane. Sums run over the hits
// in their order, so one circle gives the same bits in both. The moments are about the mean of the points; a single
// equation in x then gives each fit (N. Chernov, "Circular and Linear Regression", CRC Press 2010, sections 5.4 to
// 5.8): x = 0 is linear least squares (Kasa), the root near 0 of a polynomial of third order is Taubin's fit, of fourth
// order Pratt's.
#pragma once

#include "na62/rich/generated/rich_types.h"
#include "na62/rich/ring_lanes.cuh"

namespace hlt {

/// Newton steps from x = 0: the root is small for points near a circle, and each step doubles the correct digits.
constexpr uint32_t circle_newton_steps = 5;
/// A step below this part of the spread is the last one: the next would move the centre by 1e-7 of the radius.
constexpr float circle_final_step = 3e-4f;
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

/// The number and the mean of points, and the means of products about it; z = x^2 + y^2. zz: the variance of z.
template <typename Lanes>
struct circle_moments {
    Lanes n, x, y;
    Lanes xx, xy, yy, xz, yz, zz;
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

/// The moments of finished sums.
template <typename Lanes>
__device__ __forceinline__ circle_moments<Lanes> moments_of(const circle_sums<Lanes>& sums)
{
    const Lanes one = Lanes{} + 1.f;
    const Lanes per_point = one / larger_of(sums.n, one);
    const Lanes xx = sums.xx * per_point, yy = sums.yy * per_point, mean_z = xx + yy;
    return {sums.n,
            sums.x,
            sums.y,
            xx,
            sums.xy * per_point,
            yy,
            sums.xz * per_point,
            sums.yz * per_point,
            sums.zz * per_point - mean_z * mean_z};
}

/// The circle of some points. Not valid: fewer than three points, equal points, points on a line, and points for which
/// the fit does not converge. Limits of the spread, of the determinant and of a step are relative to the mean of z.
template <typename Lanes>
__device__ __forceinline__ circle<Lanes> solve_circle(const circle_moments<Lanes>& of, uint32_t method,
                                                      float min_spread)
{
    const Lanes zero{}, one = zero + 1.f;
    const Lanes mean_z = of.xx + of.yy, square = mean_z * mean_z;
    const Lanes spread = of.xx * of.yy - of.xy * of.xy;
    const Lanes of_x = of.xz * of.yy - of.yz * of.xy, of_y = of.yz * of.xx - of.xz * of.xy;
    const float is_pratt = method == fit_pratt ? 1.f : 0.f;
    const Lanes a0 = of.xz * of_x + of.yz * of_y - of.zz * spread;
    const Lanes a1 = mean_z * (of.zz + 4.f * spread) - (of.xz * of.xz + of.yz * of.yz);
    const Lanes a2 = 4.f * (is_pratt * spread - square) - of.zz;
    const Lanes a3 = (method == fit_taubin ? 4.f : 0.f) * mean_z;
    const float a4 = 4.f * is_pratt;
    // Lanes that have no circle anyway do not count as open.
    const auto may_have_circle =
        (of.n >= zero + 3.f) & (mean_z >= zero + min_mean_square) & (spread >= min_spread * square);
    lane_mask<Lanes> open = may_have_circle;
    Lanes root = zero, last_step = zero;
    if (method != fit_least_squares) {
        const Lanes final_step = circle_final_step * spread;
        for (uint32_t step = 0; step < circle_newton_steps && any_lane(open); ++step) {
            const Lanes root_square = root * root;
            const Lanes value = (a0 + root * a1) + root_square * (a2 + root * (a3 + a4 * root));
            const Lanes slope = (a1 + root * (2.f * a2)) + root_square * (3.f * a3 + root * (4.f * a4));
            const Lanes next = root - value / (slope == zero ? one : slope);
            // Rounding may leave a root below 0 for points on a circle.
            const Lanes at_least_zero = larger_of(next, zero);
            last_step = open ? magnitude(at_least_zero - root) * mean_z : last_step;
            root = open ? at_least_zero : root;
            open &= last_step > final_step;
        }
    }
    const Lanes determinant = (spread - root * mean_z) + root * root;
    const auto converged = last_step <= circle_last_step * spread + circle_rounding * square;
    const auto curved = may_have_circle & converged & (determinant >= circle_min_determinant * square);
    const Lanes per_twice = one / (curved ? 2.f * determinant : one);
    const Lanes x = (of_x - of.xz * root) * per_twice, y = (of_y - of.yz * root) * per_twice;
    circle<Lanes> found;
    found.x = of.x + x;
    found.y = of.y + y;
    found.radius = square_root(x * x + y * y + mean_z + 2.f * is_pratt * root);
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

}  // namespace hlt
