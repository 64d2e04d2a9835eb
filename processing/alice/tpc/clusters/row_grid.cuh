// The rows of a slice: places of their clusters and bins (D. Rohr, "ALICE TPC Online Tracking on GPU based on Kalman
// Filter", diploma thesis, Heidelberg, 2010, section 2.2.3).
//
// A row of n clusters has up to n bins. They divide the box around the clusters of its chamber, in y first: bins that
// are adjacent in y hold adjacent clusters. Bins are as square as their number allows.
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "framework/device/lanes.cuh"
#include "framework/generated/launch_types.h"

namespace hlt {

/// A row. `first`: place of its first cluster in the slice, also of its first bin. Coordinates are those of banks.
struct tpc_row {
    uint32_t first, n_clusters, bin;
    uint32_t y_min, z_min, n_y, n_z, y_width, z_width;
};

/// First rows of the chambers.
__device__ uint32_t chamber_of_row(uint32_t row)
{
    return (row >= 31u ? 1u : 0u) + (row >= 63u ? 1u : 0u) + (row >= 91u ? 1u : 0u) + (row >= 117u ? 1u : 0u) +
           (row >= 140u ? 1u : 0u);
}

__device__ float y_of(uint32_t place)
{
    return (static_cast<float>(place & 0xFFFFu) - static_cast<float>(tpc_y_offset)) * tpc_y_step;
}

/// Drift coordinate, the distance from the central electrode.
__device__ float z_of(uint32_t place) { return static_cast<float>(place >> 16) * tpc_z_step + tpc_z_start; }

/// y and z in units of banks, not rounded.
__device__ float y_units(float y) { return y / tpc_y_step + static_cast<float>(tpc_y_offset); }
__device__ float z_units(float z) { return (z - tpc_z_start) / tpc_z_step; }

__device__ tpc_row make_row(uint32_t row, uint32_t first, uint32_t n_clusters, const tpc_box& box)
{
    const uint32_t y_extent = n_clusters != 0u ? box.y_max - box.y_min : 0u;
    const uint32_t z_extent = n_clusters != 0u ? box.z_max - box.z_min : 0u;
    const float y_length = static_cast<float>(y_extent + 1u) * tpc_y_step;
    const float z_length = static_cast<float>(z_extent + 1u) * tpc_z_step;
    const uint32_t n = max_of(n_clusters, 1u);
    const float side = square_root(y_length * z_length / static_cast<float>(n));
    const uint32_t n_y = min_of(max_of(static_cast<uint32_t>(y_length / side), 1u), n);
    const uint32_t n_z = n / n_y;
    return {first, n_clusters, first + row, box.y_min, box.z_min, n_y, n_z, y_extent / n_y + 1u, z_extent / n_z + 1u};
}

__device__ uint32_t bin_of(const tpc_row& row, uint32_t place)
{
    return ((place >> 16) - row.z_min) / row.z_width * row.n_y + ((place & 0xFFFFu) - row.y_min) / row.y_width;
}

/// The threads of a block write the rows of a slice, in memory that they share; `scratch` has a word for each of their
/// warps.
__device__ void tabulate_rows(const uint16_t* counts, const tpc_box* boxes, tpc_row* rows, uint32_t* scratch)
{
    uint32_t running = 0;
    for (uint32_t base = 0; base < tpc_rows; base += blockDim.x) {
        const uint32_t row = base + threadIdx.x;
        const uint32_t n = row < tpc_rows ? counts[row] : 0u;
        uint32_t total;
        const uint32_t first = running + block_exclusive_sum(n, scratch, total);
        running += total;
        if (row < tpc_rows) rows[row] = make_row(row, first, n, boxes[chamber_of_row(row)]);
    }
    block_barrier();
}

/// Clusters in all rows.
__device__ uint32_t clusters_of_rows(const tpc_row* rows)
{
    return rows[tpc_rows - 1u].first + rows[tpc_rows - 1u].n_clusters;
}

/// Numbers in a row of the bins that touch an interval of a coordinate, in units of banks; `margin` covers rounding.
struct bin_range {
    uint32_t first, last;
};

__device__ bin_range bins_between(float low, float high, uint32_t min, uint32_t width, uint32_t n)
{
    const float begin = (low - 2.f - static_cast<float>(min)) / static_cast<float>(width);
    const float end = (high + 2.f - static_cast<float>(min)) / static_cast<float>(width);
    const float most = static_cast<float>(n - 1u);
    const float first = begin > 0.f ? (begin < most ? begin : most) : 0.f;
    const float last = end > 0.f ? (end < most ? end : most) : 0.f;
    return {static_cast<uint32_t>(first), static_cast<uint32_t>(last)};
}

}  // namespace hlt
