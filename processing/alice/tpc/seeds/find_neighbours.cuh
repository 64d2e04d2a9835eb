// Step I of the cellular automaton: the best pair of neighbours of each cluster (D. Rohr, "ALICE TPC Online Tracking on
// GPU based on Kalman Filter", diploma thesis, Heidelberg, 2010, sections 2.3.1 and 6.2.1).
//
// In:  the sorted clusters and the grid. Out: tpc_clusters.up and down: numbers in their rows, tpc_no_cluster for none.
// One block per slice; threads stride over its clusters. A window in the rows two above and two below is centred on the
// line from the origin through the cluster. The pair with the smallest square of the change of the slope is taken; of
// equal pairs, that with the lowest numbers (up first). Bounds: a window with more than tpc_max_window clusters, or
// whose bins have more than tpc_max_read, gives no neighbours, and a flag.
#pragma once

#include "alice/tpc/clusters/row_grid.cuh"
#include "alice/tpc/generated/tpc_flags.h"
#include "alice/tpc/seeds/generated/tpc_find_neighbours.h"
#include "framework/device/between_blocks.cuh"

namespace hlt {

/// A rectangle in a row, in cm.
struct tpc_window {
    float y, z, half_y, half_z;
};

/// Calls `take(number in the row, y, z)` for the clusters of a row in a window; false after tpc_max_window of them, and
/// before the bins that are read have more than tpc_max_read clusters, inside of the window or not.
template <typename Take>
__device__ bool for_window(const tpc_row& row, const uint32_t* places, const uint16_t* begins, const tpc_window& window,
                           const Take& take)
{
    if (row.n_clusters == 0u) return true;
    const bin_range in_y = bins_between(y_units(window.y - window.half_y), y_units(window.y + window.half_y), row.y_min,
                                        row.y_width, row.n_y);
    const bin_range in_z = bins_between(z_units(window.z - window.half_z), z_units(window.z + window.half_z), row.z_min,
                                        row.z_width, row.n_z);
    uint32_t n = 0, n_read = 0;
    for (uint32_t iz = in_z.first; iz <= in_z.last; ++iz) {
        const uint16_t* const of_line = begins + row.bin + iz * row.n_y;
        const uint32_t first = of_line[in_y.first], last = of_line[in_y.last + 1u];
        n_read += last - first;
        if (n_read > tpc_max_read) return false;
        for (uint32_t i = first; i < last; ++i) {
            const float y = y_of(places[row.first + i]), z = z_of(places[row.first + i]);
            const float dy = y - window.y, dz = z - window.z;
            if (dy > window.half_y || -dy > window.half_y || dz > window.half_z || -dz > window.half_z) continue;
            if (n == tpc_max_window) return false;
            ++n;
            take(i, y, z);
        }
    }
    return true;
}

/// Neighbours below, with the slopes of the lines to them.
struct tpc_neighbours {
    uint32_t n;
    uint16_t numbers[tpc_max_window];
    float slope_y[tpc_max_window], slope_z[tpc_max_window];
};

}  // namespace hlt

HLT_KERNEL(tpc_find_neighbours)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t crowded;
    if (threadIdx.x == 0) crowded = 0;
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);

    const uint32_t first = p.tpc_clusters.first(blockIdx.x);
    const uint32_t* const places = p.tpc_clusters.places + first;
    const uint16_t* const begins = p.tpc_bins.begin + p.tpc_bins.first(blockIdx.x);
    const uint32_t n_clusters = hlt::clusters_of_rows(rows);
    const float max_change = p.max_slope_change * p.max_slope_change;
    uint32_t row = 0;
    for (uint32_t i = threadIdx.x; i < n_clusters; i += blockDim.x) {
        while (i >= rows[row].first + rows[row].n_clusters) ++row;
        uint32_t up = hlt::tpc_no_cluster, down = hlt::tpc_no_cluster;
        if (row >= 2u && row + 2u < hlt::tpc_rows) {
            const float x = p.tpc.geometry[row], y = hlt::y_of(places[i]), z = hlt::z_of(places[i]);
            const auto window_at = [&](float other_x) {
                const float ratio = other_x / x, dx = other_x > x ? other_x - x : x - other_x;
                return hlt::tpc_window{y * ratio, z * ratio, p.slope_y * dx + p.margin, p.slope_z * dx + p.margin};
            };
            const float x_down = p.tpc.geometry[row - 2u], x_up = p.tpc.geometry[row + 2u];
            const float over_down = 1.f / (x_down - x), over_up = 1.f / (x_up - x);
            hlt::tpc_neighbours below;
            below.n = 0;
            bool fits = hlt::for_window(rows[row - 2u], places, begins, window_at(x_down),
                                        [&](uint32_t number, float other_y, float other_z) {
                                            below.numbers[below.n] = static_cast<uint16_t>(number);
                                            below.slope_y[below.n] = (other_y - y) * over_down;
                                            below.slope_z[below.n] = (other_z - z) * over_down;
                                            ++below.n;
                                        });
            float best = max_change;
            if (fits && below.n != 0u)
                fits = hlt::for_window(
                    rows[row + 2u], places, begins, window_at(x_up),
                    [&](uint32_t number, float other_y, float other_z) {
                        const float slope_y = (other_y - y) * over_up, slope_z = (other_z - z) * over_up;
                        for (uint32_t k = 0; k < below.n; ++k) {
                            const float in_y = slope_y - below.slope_y[k], in_z = slope_z - below.slope_z[k];
                            const float change = in_y * in_y + in_z * in_z;
                            // Numbers rise, so of equal pairs the first one counts.
                            if (change < best) {
                                best = change;
                                up = number;
                                down = below.numbers[k];
                            }
                        }
                    });
            if (!fits) {
                atomicOr(&crowded, 1u);
                up = down = hlt::tpc_no_cluster;
            }
        }
        p.tpc_clusters.up[first + i] = static_cast<uint16_t>(up);
        p.tpc_clusters.down[first + i] = static_cast<uint16_t>(down);
    }
    hlt::block_barrier();
    if (threadIdx.x == 0 && crowded != 0u)
        hlt::set_bits_between_blocks(&p.events.flags[p.event_of(blockIdx.x)], uint32_t{hlt::crowded_clusters});
}
