// Cubes in which free ends of segments are searched.
#pragma once

#include "alice/tpc/merging/segments/segment_end.cuh"

namespace hlt {

/// cm: ends farther away on an axis are in no cell.
constexpr float tpc_farthest_end = 640.f;
/// cm between two ends that are compared: within the cells around each of them, with a margin for rounding.
constexpr float tpc_free_reach = static_cast<float>(tpc_cell_size) - 0.5f;

/// The place of an end, or a tpc_free_end.
template <typename Place>
__device__ bool is_in_a_cell(const Place& at)
{
    return square(at.x) < square(tpc_farthest_end) && square(at.y) < square(tpc_farthest_end) &&
           square(at.z) < square(tpc_farthest_end);
}

/// Whether two ends are near enough to be compared.
template <typename Place>
__device__ bool are_near(const Place& a, const tpc_free_end& b)
{
    return square(a.x - b.x) + square(a.y - b.y) + square(a.z - b.z) < square(tpc_free_reach);
}

/// The cell on an axis of a place within tpc_farthest_end, before it is folded.
__device__ uint32_t cell_of_axis(float x)
{
    return static_cast<uint32_t>((x + tpc_farthest_end) / static_cast<float>(tpc_cell_size));
}

__device__ uint32_t folded_cell(uint32_t x, uint32_t y, uint32_t z)
{
    constexpr uint32_t n = tpc_cells_of_axis;
    return (x % n * n + y % n) * n + z % n;
}

/// Calls `visit(first, last)` for the places of the ends in the 27 cells around a place, in 27 calls.
template <typename Place, typename Visit>
__device__ void for_near_cells(const uint32_t* begins, const Place& at, const Visit& visit)
{
    const uint32_t x = cell_of_axis(at.x), y = cell_of_axis(at.y), z = cell_of_axis(at.z), n = tpc_cells_of_axis;
    for (uint32_t i = n - 1u; i <= n + 1u; ++i)
        for (uint32_t j = n - 1u; j <= n + 1u; ++j)
            for (uint32_t k = n - 1u; k <= n + 1u; ++k) {
                const uint32_t cell = folded_cell(x + i, y + j, z + k);
                visit(begins[cell], begins[cell + 1u]);
            }
}

/// The number of ends in the 27 cells around a place.
template <typename Place>
__device__ uint32_t near_free_ends(const uint32_t* begins, const Place& at)
{
    uint32_t n = 0;
    for_near_cells(begins, at, [&](uint32_t first, uint32_t last) { n += last - first; });
    return n;
}

}  // namespace hlt
