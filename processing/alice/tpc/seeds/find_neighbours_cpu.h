// The finder with clusters of a window in the lanes of vectors. Windows are computed for several clusters of a row at
// once; then each cluster compares the slopes of its candidates below, in lanes, with each candidate above.
#pragma once

#include "alice/tpc/clusters/wide_places.h"
#include "alice/tpc/seeds/find_neighbours.cuh"

namespace hlt {

/// Bins of the windows of n_wide clusters in one row.
struct wide_bins {
    uint32_t first_y[n_wide], last_y[n_wide], first_z[n_wide], last_z[n_wide];
    float y[n_wide], z[n_wide];  // centres, cm

    /// Windows on the lines from the origin: `ratio` is that of x. half_y, half_z: half of their widths, cm.
    void fill(const float_wide& of_y, const float_wide& of_z, const tpc_row& row, float ratio, float half_y,
              float half_z)
    {
        const float_wide centre_y = of_y * ratio, centre_z = of_z * ratio;
        store_wide(y, centre_y);
        store_wide(z, centre_z);
        store_wide(first_y, bins_at(y_units(centre_y - half_y) - 2.f, row.y_min, row.y_width, row.n_y));
        store_wide(last_y, bins_at(y_units(centre_y + half_y) + 2.f, row.y_min, row.y_width, row.n_y));
        store_wide(first_z, bins_at(z_units(centre_z - half_z) - 2.f, row.z_min, row.z_width, row.n_z));
        store_wide(last_z, bins_at(z_units(centre_z + half_z) + 2.f, row.z_min, row.z_width, row.n_z));
    }

  private:
    static uint_wide bins_at(const float_wide& place, uint32_t min, uint32_t width, uint32_t n)
    {
        const float_wide bin = (place - static_cast<float>(min)) / static_cast<float>(width);
        const float_wide most = in_all_lanes<float_wide>(static_cast<float>(n - 1u));
        return truncated(bin > 0.f ? (bin < most ? bin : most) : float_wide{});
    }
};

/// Clusters of a window in the order of their numbers, with the slopes of the lines to them.
struct window_clusters {
    uint32_t n;
    uint32_t numbers[tpc_max_window + n_wide];
    float slope_y[tpc_max_window + n_wide], slope_z[tpc_max_window + n_wide];

    /// for_window, without clusters if it gives none: false. y, z: of the cluster in the middle row.
    bool fill(const tpc_row& row, const uint32_t* places, const uint32_t* end, const uint16_t* begins,
              const wide_bins& bins, uint32_t l, float half_y, float half_z, float y, float z, float over)
    {
        n = 0;
        const float window_y = bins.y[l], window_z = bins.z[l];
        const uint16_t* of_line = begins + row.bin + bins.first_z[l] * row.n_y;
        uint32_t n_read = 0;
        for (uint32_t iz = bins.first_z[l]; iz <= bins.last_z[l]; ++iz, of_line += row.n_y) {
            const uint32_t first = of_line[bins.first_y[l]], last = of_line[bins.last_y[l] + 1u];
            n_read += last - first;
            if (n_read > tpc_max_read) return false;
            for (uint32_t i = first; i < last; i += n_wide) {
                uint_wide place;
                load_wide_before(place, reinterpret_cast<const uint8_t*>(places + row.first + i), last - i,
                                 reinterpret_cast<const uint8_t*>(end));
                const float_wide at_y = y_of(place), at_z = z_of(place);
                const float_wide dy = at_y - window_y, dz = at_z - window_z;
                const int_wide outside = (magnitude(dy) > half_y) | (magnitude(dz) > half_z);
                const uint32_t inside = ~bits_of(outside) & first_bits(last - i);
                const uint32_t n_inside = static_cast<uint32_t>(__popc(static_cast<int>(inside)));
                if (n + n_inside > tpc_max_window) return false;
                store_packed_wide(numbers + n, wide_numbers + i, inside);
                store_packed_wide(slope_y + n, (at_y - y) * over, inside);
                store_packed_wide(slope_z + n, (at_z - z) * over, inside);
                n += n_inside;
            }
        }
        return true;
    }
};

/// The pair of clusters with the smallest change of the slope.
struct best_pair {
    uint32_t up, down;
};

/// Of equal pairs the first one: clusters are in the order of their numbers.
inline best_pair find_best_pair(window_clusters& below, const window_clusters& above, float max_change)
{
    // Lanes behind the last one are no smaller than any other.
    const float_wide far = in_all_lanes<float_wide>(1e30f);
    store_wide(below.slope_y + below.n, far);
    store_wide(below.slope_z + below.n, far);
    float_wide best = in_all_lanes<float_wide>(max_change);
    const uint_wide none = uint_wide{} + tpc_no_cluster;
    uint_wide up = none, down = none;
    for (uint32_t k = 0; k < below.n; k += n_wide) {
        float_wide of_y, of_z;
        load_wide(of_y, below.slope_y + k);
        load_wide(of_z, below.slope_z + k);
        float_wide of_these = in_all_lanes<float_wide>(max_change);
        uint_wide pair = none;
        for (uint32_t i = 0; i < above.n; ++i) {
            const float_wide in_y = above.slope_y[i] - of_y, in_z = above.slope_z[i] - of_z;
            const float_wide change = in_y * in_y + in_z * in_z;
            const int_wide better = change < of_these;
            of_these = better ? change : of_these;
            pair = better ? uint_wide{} + i : pair;
        }
        // Of equal changes the lower number above counts, then the lower one below.
        const int_wide better = (pair != none) & ((of_these < best) | ((of_these == best) & (pair < up)));
        best = better ? of_these : best;
        up = better ? pair : up;
        down = better ? wide_numbers + k : down;
    }
    // Changes are not negative, so their bits have the same order.
    const uint_wide change_bits = (uint_wide)best;
    const uint32_t least = lowest_lane(change_bits);
    uint32_t lanes = bits_of((change_bits == least) & (up != none));
    if (lanes == 0u) return {tpc_no_cluster, tpc_no_cluster};
    best_pair found{tpc_no_cluster, tpc_no_cluster};
    for (; lanes != 0u; lanes &= lanes - 1u) {
        const uint32_t l = lowest_bit(lanes);
        if (up[l] < found.up || (up[l] == found.up && down[l] < found.down)) found = {up[l], down[l]};
    }
    return {above.numbers[found.up], below.numbers[found.down]};
}

}  // namespace hlt

HLT_CPU_FORM(tpc_find_neighbours)
{
    if constexpr (!hlt::compares_eight_lanes) return tpc_find_neighbours(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    hlt::tpc_row rows[hlt::tpc_rows];
    uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::tabulate_rows(p.tpc_slices.row_counts + event * hlt::tpc_rows, p.tpc_slices.boxes + event * hlt::tpc_chambers,
                       rows, scratch);
    const uint32_t first = p.tpc_clusters.first(event);
    const uint32_t* const places = p.tpc_clusters.places + first;
    const uint32_t* const end = places + hlt::clusters_of_rows(rows);
    const uint16_t* const begins = p.tpc_bins.begin + p.tpc_bins.first(event);
    const float max_change = p.max_slope_change * p.max_slope_change;
    bool crowded = false;
    hlt::wide_bins bins_below, bins_above;
    hlt::window_clusters below, above;
    for (uint32_t row = 0; row < hlt::tpc_rows; ++row) {
        const uint32_t n = rows[row].n_clusters;
        uint16_t* const ups = p.tpc_clusters.up + first + rows[row].first;
        uint16_t* const downs = p.tpc_clusters.down + first + rows[row].first;
        std::memset(ups, 0xFF, n * sizeof *ups);
        std::memset(downs, 0xFF, n * sizeof *downs);
        if (row < 2u || row + 2u >= hlt::tpc_rows) continue;
        const hlt::tpc_row &row_below = rows[row - 2u], &row_above = rows[row + 2u];
        if (row_below.n_clusters == 0u) continue;
        const float x = p.tpc.geometry[row], x_below = p.tpc.geometry[row - 2u], x_above = p.tpc.geometry[row + 2u];
        const float dx_below = x_below > x ? x_below - x : x - x_below;
        const float dx_above = x_above > x ? x_above - x : x - x_above;
        const float y_below = p.slope_y * dx_below + p.margin, z_below = p.slope_z * dx_below + p.margin;
        const float y_above = p.slope_y * dx_above + p.margin, z_above = p.slope_z * dx_above + p.margin;
        const float over_below = 1.f / (x_below - x), over_above = 1.f / (x_above - x);
        for (uint32_t i = 0; i < n; i += hlt::n_wide) {
            hlt::uint_wide place;
            hlt::load_wide_before(place, reinterpret_cast<const uint8_t*>(places + rows[row].first + i), n - i,
                                  reinterpret_cast<const uint8_t*>(end));
            const hlt::float_wide y = hlt::y_of(place), z = hlt::z_of(place);
            bins_below.fill(y, z, row_below, x_below / x, y_below, z_below);
            if (row_above.n_clusters != 0u) bins_above.fill(y, z, row_above, x_above / x, y_above, z_above);
            for (uint32_t l = 0; l < hlt::min_of(n - i, hlt::n_wide); ++l) {
                bool fits =
                    below.fill(row_below, places, end, begins, bins_below, l, y_below, z_below, y[l], z[l], over_below);
                if (fits && below.n != 0u && row_above.n_clusters != 0u) {
                    fits = above.fill(row_above, places, end, begins, bins_above, l, y_above, z_above, y[l], z[l],
                                      over_above);
                    if (fits) {
                        const hlt::best_pair best = hlt::find_best_pair(below, above, max_change);
                        ups[i + l] = static_cast<uint16_t>(best.up);
                        downs[i + l] = static_cast<uint16_t>(best.down);
                    }
                }
                crowded |= !fits;
            }
        }
    }
    if (crowded) hlt::set_bits_between_blocks(&p.events.flags[p.event_of(event)], uint32_t{hlt::crowded_clusters});
}
