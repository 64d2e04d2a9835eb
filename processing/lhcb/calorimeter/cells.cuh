// Energies and places of the cells of the calorimeter (docs/physics/calorimeter.md).
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/calorimeter/generated/ecal_types.h"

namespace hlt {

/// ADC value of a cell that was not read out; below all others.
constexpr int32_t no_ecal_adc = -static_cast<int32_t>(ecal_void_adc);

/// MeV, of a cell that was read out.
__device__ float ecal_cell_energy(const ecal_geometry& geometry, uint32_t cell, int32_t adc)
{
    return geometry.gain[cell] * (static_cast<float>(adc) - geometry.pedestal);
}

/// A straight line in z, or one in each lane of a vector.
template <typename Real>
struct ecal_line_of {
    Real x, y;  // mm, at z = 0
    Real tx, ty;

    /// z at which it crosses a plane of the calorimeter.
    __device__ Real z_at(const float (&plane)[4]) const
    {
        return -(plane[0] * x + plane[1] * y + plane[3]) / (plane[0] * tx + plane[1] * ty + plane[2]);
    }
};

using ecal_line = ecal_line_of<float>;

/// Integer below a number of magnitude below 2^24.
__device__ int32_t floor_to_int(float value)
{
    const int32_t truncated = static_cast<int32_t>(value);
    return static_cast<float>(truncated) > value ? truncated - 1 : truncated;
}

/// Number of a cell in the rows of a region with a hole, or no_ecal_cell outside of the region and in the hole.
///
/// Rows are numbered from below; those beside the hole have fewer cells. Sizes in cells: half of the region, half of
/// its hole.
__device__ uint32_t ecal_cell_of_region(int32_t x, int32_t y, int32_t half_x, int32_t half_y, int32_t hole_x,
                                        int32_t hole_y, uint32_t first)
{
    if (x < -half_x || x >= half_x || y < -half_y || y >= half_y) return no_ecal_cell;
    const int32_t row_of_hole = y < -hole_y ? 0 : y < hole_y ? y + hole_y : 2 * hole_y;
    int32_t cell = 2 * half_x * (y + half_y) + x + half_x - 2 * hole_x * row_of_hole;
    if (y >= -hole_y && y < hole_y) {
        if (x >= -hole_x && x < hole_x) return no_ecal_cell;
        if (x >= hole_x) cell -= 2 * hole_x;
    }
    return first + static_cast<uint32_t>(cell);
}

/// The cell of a point (mm), or no_ecal_cell outside of the calorimeter.
///
/// The place in units of a cell is rounded down in each region, so that a point on the border of two regions belongs to
/// one cell in all of them.
__device__ uint32_t ecal_cell_of(const ecal_geometry& geometry, float x, float y, float z)
{
    const float (&to_local)[3][4] = geometry.to_local;
    const float in_x = (to_local[0][0] * x + to_local[0][1] * y + to_local[0][2] * z + to_local[0][3]);
    const float in_y = (to_local[1][0] * x + to_local[1][1] * y + to_local[1][2] * z + to_local[1][3]);
    const float u = in_x / geometry.module_size, v = in_y / geometry.module_size;
    if (!(fabsf(u) <= 32.f) || !(fabsf(v) <= 26.f)) return no_ecal_cell;
    const int32_t outer_x = floor_to_int(u), outer_y = floor_to_int(v);
    if (outer_x < -16 || outer_x >= 16 || outer_y < -10 || outer_y >= 10)
        return ecal_cell_of_region(outer_x, outer_y, 32, 26, 16, 10, 0);
    const int32_t middle_x = floor_to_int(2.f * u), middle_y = floor_to_int(2.f * v);
    if (middle_x < -16 || middle_x >= 16 || middle_y < -12 || middle_y >= 12)
        return ecal_cell_of_region(middle_x, middle_y, 32, 20, 16, 12, first_middle_ecal_cell);
    return ecal_cell_of_region(floor_to_int(3.f * u), floor_to_int(3.f * v), 24, 18, 8, 6, first_inner_ecal_cell);
}

/// Energy of the cells that a line crosses at some depths, each cell once; cells without energy do not count.
struct ecal_energy_sum {
    static constexpr uint32_t max_depths = 6;
    const ecal_geometry* geometry;
    const int16_t* adc;
    uint32_t n_cells = 0;
    uint32_t cells[max_depths] = {};
    float energy = 0.f;

    /// Add the cell of a line at a depth. Returns true if it was read out.
    __device__ bool add(const ecal_line& line, float z)
    {
        return add_cell(ecal_cell_of(*geometry, line.x + z * line.tx, line.y + z * line.ty, z));
    }

    /// Add a cell, or no_ecal_cell. Returns true if it was read out.
    __device__ bool add_cell(uint32_t cell)
    {
        if (cell == no_ecal_cell || adc[cell] == no_ecal_adc) return false;
        const float of_cell = ecal_cell_energy(*geometry, cell, adc[cell]);
        bool is_new = of_cell > 0.f;
        for (uint32_t i = 0; i < n_cells; ++i) is_new = is_new && cells[i] != cell;
        if (is_new) {
            cells[n_cells++] = cell;
            energy += of_cell;
        }
        return true;
    }
};

}  // namespace hlt
