// The hits of an event for the search: positions, and what a fit adds up of each hit.
//
// A fit needs sums of coordinates and their products. Each hit has them as integers, so a sum is exact and the same in
// any order: a hit needs one addition for each, and hits may lie in lanes or threads in any way. Coordinates are about
// the centre of the box around all hits, in units of half its longer side, so that they are at most 1. A unit is 2^22
// steps: the sum of 64 hits of z z, at most 4, fits into 31 bits. Rounding moves a ring of half the box by 10^-4 mm, a
// quarter of a circle by up to 0.2 mm (docs/physics/rich-rings.md).
#pragma once

#include "na62/rich/circle.cuh"
#include "na62/rich/hit_lanes.cuh"

namespace hlt {

/// The sums of a fit, in this order. z = x^2 + y^2.
enum hit_product : uint32_t { sum_x, sum_y, sum_xx, sum_xy, sum_yy, sum_xz, sum_yz, sum_zz, n_hit_products };

constexpr float steps_of_unit = 4194304.f;

/// Where the unit square of an event lies, in mm.
struct hit_frame {
    float x, y, half, inverse;
};

/// The hits of a pass. Behind the last one lies one more that is not a number, so a step may take it and no circle has
/// it.
struct search_hits {
    float x[rich_max_hits + 1u];
    float y[rich_max_hits + 1u];
    int32_t of[n_hit_products][rich_max_hits + 1u];
    uint32_t n;
};

__device__ __forceinline__ hit_frame frame_of_box(float least_x, float most_x, float least_y, float most_y)
{
    // Points within a millimetre have no circle that is a ring.
    const float half = max_of(max_of(0.5f * (most_x - least_x), 0.5f * (most_y - least_y)), 1.f);
    return {0.5f * (least_x + most_x), 0.5f * (least_y + most_y), half, 1.f / half};
}

/// The products of hits in lanes; `write(product, integers)` stores them.
template <typename Lanes, typename Write>
__device__ __forceinline__ void make_products(const hit_frame& frame, const Lanes& hit_x, const Lanes& hit_y,
                                              const Write& write)
{
    const Lanes x = (hit_x - frame.x) * frame.inverse, y = (hit_y - frame.y) * frame.inverse;
    const Lanes xx = x * x, yy = y * y, z = xx + yy;
    const Lanes steps_x = x * steps_of_unit, steps_y = y * steps_of_unit;
    write(sum_x, as_ints(steps_x));
    write(sum_y, as_ints(steps_y));
    write(sum_xx, as_ints(x * steps_x));
    write(sum_xy, as_ints(x * steps_y));
    write(sum_yy, as_ints(y * steps_y));
    write(sum_xz, as_ints(steps_x * z));
    write(sum_yz, as_ints(steps_y * z));
    write(sum_zz, as_ints(z * z * steps_of_unit));
}

/// The sums of the hits of the ring in each lane.
template <typename Lanes>
struct ring_sums {
    ints_of<Lanes> n;
    ints_of<Lanes> of[n_hit_products];

    __device__ __forceinline__ void clear()
    {
        n = ints_of<Lanes>{};
        for (uint32_t i = 0; i < n_hit_products; ++i) of[i] = ints_of<Lanes>{};
    }
    /// Add the hits of a step in the lanes of `taken`.
    __device__ __forceinline__ void add(const search_hits& hits, uint32_t step, const step_mask<Lanes>& taken)
    {
        add_where(taken, n, ints_of<Lanes>{} + 1);
        for (uint32_t i = 0; i < n_hit_products; ++i) {
            ints_of<Lanes> value;
            load_step(value, hits.of[i], step);
            add_where(taken, of[i], value);
        }
    }
    __device__ __forceinline__ void join()
    {
        n = joined_sum(n);
        for (uint32_t i = 0; i < n_hit_products; ++i) of[i] = joined_sum(of[i]);
    }
    /// In which lanes other sums differ. Equal sums give the same circle.
    __device__ __forceinline__ step_mask<Lanes> changed_to(const ring_sums& other) const
    {
        step_mask<Lanes> changed = differs(n, other.n);
        for (uint32_t i = 0; i < n_hit_products; ++i)
            changed = static_cast<step_mask<Lanes>>(changed | differs(of[i], other.of[i]));
        return changed;
    }
};

/// Sums of products about the mean, in mm: those of fit_taken but for rounding.
template <typename Lanes>
__device__ __forceinline__ circle_moments<Lanes> moments_of(const ring_sums<Lanes>& sums, const hit_frame& frame)
{
    const Lanes one = Lanes{} + 1.f;
    const Lanes n = as_floats(sums.n);
    const Lanes per_hit = (1.f / steps_of_unit) / larger_of(n, one);
    const Lanes x = as_floats(sums.of[sum_x]) * per_hit, y = as_floats(sums.of[sum_y]) * per_hit;
    const Lanes of_xx = as_floats(sums.of[sum_xx]) * per_hit, of_yy = as_floats(sums.of[sum_yy]) * per_hit;
    const Lanes of_z = of_xx + of_yy;
    const float square = frame.half * frame.half;
    circle_moments<Lanes> about_mean;
    about_mean.n = n;
    about_mean.x = frame.x + frame.half * x;
    about_mean.y = frame.y + frame.half * y;
    const Lanes xx = of_xx - x * x, yy = of_yy - y * y, xy = as_floats(sums.of[sum_xy]) * per_hit - x * y;
    // With z about the origin of the frame: its covariance with x and y, and its variance.
    const Lanes xz = as_floats(sums.of[sum_xz]) * per_hit - x * of_z;
    const Lanes yz = as_floats(sums.of[sum_yz]) * per_hit - y * of_z;
    const Lanes zz = as_floats(sums.of[sum_zz]) * per_hit - of_z * of_z;
    const Lanes along_x = 2.f * (x * xx + y * xy), along_y = 2.f * (x * xy + y * yy);
    about_mean.xx = square * xx;
    about_mean.xy = square * xy;
    about_mean.yy = square * yy;
    about_mean.xz = (square * frame.half) * (xz - along_x);
    about_mean.yz = (square * frame.half) * (yz - along_y);
    about_mean.zz = (square * square) * (zz + 2.f * (x * (along_x - 2.f * xz) + y * (along_y - 2.f * yz)));
    return about_mean;
}

}  // namespace hlt
