// The cells of points in the lanes of vector registers.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/calorimeter/cells.cuh"

namespace hlt {

/// floor_to_int of each lane.
inline __attribute__((always_inline)) int_wide floor_of_lanes(const float_wide& values)
{
    const int_wide truncated = __builtin_convertvector(values, int_wide);
    return truncated + (int_wide)(__builtin_convertvector(truncated, float_wide) > values);
}

/// ecal_cell_of for a point in each lane.
inline __attribute__((always_inline)) uint_wide ecal_cells_of(const ecal_geometry& geometry, const float_wide& x,
                                                              const float_wide& y, const float_wide& z)
{
    const float (&to_local)[3][4] = geometry.to_local;
    const float_wide in_x = (to_local[0][0] * x + to_local[0][1] * y + to_local[0][2] * z + to_local[0][3]);
    const float_wide in_y = (to_local[1][0] * x + to_local[1][1] * y + to_local[1][2] * z + to_local[1][3]);
    float_wide u = in_x / geometry.module_size, v = in_y / geometry.module_size;
    const int_wide is_inside = (absolute(u) <= 32.f) & (absolute(v) <= 26.f);
    u = is_inside ? u : float_wide{};
    v = is_inside ? v : float_wide{};
    // The borders of a region are whole numbers of its cells, so places need no rounding before the comparison.
    const int_wide is_outer = (u < -16.f) | (u >= 16.f) | (v < -10.f) | (v >= 10.f);
    const int_wide is_middle = ~is_outer & ((u < -8.f) | (u >= 8.f) | (v < -6.f) | (v >= 6.f));
    const auto by_region = [&](auto outer, auto middle, auto inner, auto zero) __attribute__((always_inline)) {
        return is_outer ? zero + outer : is_middle ? zero + middle : zero + inner;
    };
    const float_wide cells_per_module = by_region(1.f, 2.f, 3.f, float_wide{});
    const int_wide column = floor_of_lanes(cells_per_module * u), row = floor_of_lanes(cells_per_module * v);
    const int_wide half_x = by_region(32, 32, 24, int_wide{}), half_y = by_region(26, 20, 18, int_wide{});
    const int_wide hole_x = by_region(16, 16, 8, int_wide{}), hole_y = by_region(10, 12, 6, int_wide{});
    // As ecal_cell_of_region.
    const int_wide is_in_region = (column >= -half_x) & (column < half_x) & (row >= -half_y) & (row < half_y);
    const int_wide is_beside = (row >= -hole_y) & (row < hole_y);
    const int_wide is_in_hole = is_beside & (column >= -hole_x) & (column < hole_x);
    const int_wide above_hole = row + hole_y, last_row = 2 * hole_y;
    const int_wide row_of_hole = above_hole < 0 ? int_wide{} : above_hole < last_row ? above_hole : last_row;
    const int_wide skipped = 2 * hole_x * row_of_hole + (is_beside & (column >= hole_x) & (2 * hole_x));
    const int_wide cell = 2 * half_x * (row + half_y) + column + half_x - skipped +
                          by_region(0, static_cast<int32_t>(first_middle_ecal_cell),
                                    static_cast<int32_t>(first_inner_ecal_cell), int_wide{});
    const int_wide none = int_wide{} + static_cast<int32_t>(no_ecal_cell);
    return (uint_wide)((is_inside & is_in_region & ~is_in_hole) ? cell : none);
}

}  // namespace hlt
