// The tracklet of a seed (D. Rohr, diploma thesis, Heidelberg, 2010, section 2.3.4).
//
// Up: the seed is fitted, then the nearest cluster of each row is added. Down: a new fit from the uppermost cluster
// inwards adds clusters in the rows that the seed leaves out, then below it; it drops clusters that are too far away.
// The thesis does not say from which parameters the way down begins; with a new fit they know all clusters above.
#pragma once

#include "alice/tpc/tracks/search_cluster.cuh"

namespace hlt {

/// What the construction of a tracklet needs.
struct tracklet_input {
    const tpc_row* rows;
    const uint32_t* places;
    const uint16_t* begins;
    const uint16_t* next;
    const float *row_x, *pads;  // cm, of each row: its x and the length of its pads
    tpc_filter filter;
    float max_seed_chi2, max_chi2, max_outlier_chi2;
    uint32_t max_missed_rows, min_clusters;

    __device__ tpc_point point(uint32_t row, uint32_t number) const
    {
        const uint32_t place = places[rows[row].first + number];
        return {row_x[row], y_of(place), z_of(place), pads[row]};
    }
};

/// Rows of a tracklet with its clusters; tpc_no_cluster for a row without.
struct tracklet_hits {
    uint16_t of_row[tpc_rows];
    uint32_t first, last, n;
};

/// Clusters of the tracklet of a start hit; false if there is none.
__device__ bool construct_upwards(const tracklet_input& in, uint32_t start_row, uint32_t start, tracklet_hits& hits,
                                  uint32_t& seed_end, bool& crowded)
{
    // The circle through the first, the middle and the last of up to eleven clusters.
    uint32_t chain[11], n_chain = 0;
    for (uint32_t row = start_row, link = start; link != tpc_no_cluster && n_chain < 11u; row += 2u) {
        chain[n_chain++] = link;
        link = in.next[in.rows[row].first + link];
    }
    const uint32_t middle = (n_chain - 1u) / 2u;
    const tpc_point a = in.point(start_row, start);
    tpc_state t;
    if (!start_state(in.filter, a, in.point(start_row + 2u * middle, chain[middle]),
                     in.point(start_row + 2u * (n_chain - 1u), chain[n_chain - 1u]), true, t))
        return false;
    for (uint32_t row = 0; row < tpc_rows; ++row) hits.of_row[row] = static_cast<uint16_t>(tpc_no_cluster);
    hits.first = hits.last = start_row;
    hits.n = 1;
    hits.of_row[start_row] = static_cast<uint16_t>(start);
    uint32_t row = start_row;
    for (uint32_t link = in.next[in.rows[row].first + start]; link != tpc_no_cluster;
         link = in.next[in.rows[row].first + link]) {
        row += 2u;
        const tpc_point point = in.point(row, link);
        if (!propagate(in.filter, t, point.x)) {
            // The rest of the seed turns away.
            break;
        }
        update(t, errors_at(in.filter, t, point.z, point.pad), point.y, point.z);
        hits.of_row[row] = static_cast<uint16_t>(link);
        hits.last = row;
        ++hits.n;
    }
    seed_end = hits.last;
    if (hits.n < 3u || t.chi2 > in.max_seed_chi2 * static_cast<float>(2u * hits.n - 5u)) return false;
    uint32_t missed = 0;
    for (row = hits.last + 1u; row < tpc_rows && missed <= in.max_missed_rows; ++row) {
        if (!propagate(in.filter, t, in.row_x[row])) break;
        const uint32_t found =
            nearest_cluster(in.filter, t, in.rows[row], in.places, in.begins, in.pads[row], in.max_chi2, crowded);
        if (found == tpc_no_cluster) {
            ++missed;
            continue;
        }
        const tpc_point point = in.point(row, found);
        update(t, errors_at(in.filter, t, point.z, point.pad), point.y, point.z);
        hits.of_row[row] = static_cast<uint16_t>(found);
        hits.last = row;
        ++hits.n;
        missed = 0;
    }
    return true;
}

/// The circle through three clusters of the upper half of a tracklet, at the last of them.
__device__ bool state_at_last(const tracklet_input& in, const tracklet_hits& hits, tpc_state& t)
{
    const uint32_t step = min_of((hits.n - 1u) / 2u, 8u);
    tpc_point points[3];
    uint32_t seen = 0, found = 0;
    for (uint32_t row = hits.last + 1u; row-- > hits.first && found < 3u;) {
        if (hits.of_row[row] == tpc_no_cluster) continue;
        if (seen++ == step * found) points[found++] = in.point(row, hits.of_row[row]);
    }
    return found == 3u && start_state(in.filter, points[2], points[1], points[0], false, t);
}

/// Clusters in the rows below the end of the seed that have none yet, and no clusters that are too far away.
__device__ bool construct_downwards(const tracklet_input& in, uint32_t seed_end, tracklet_hits& hits, bool& crowded)
{
    tpc_state t;
    if (!state_at_last(in, hits, t)) return false;
    const uint32_t lowest_before = hits.first;
    uint32_t missed = 0, fitted = 1;
    for (uint32_t row = hits.last; row-- > 0u && missed <= in.max_missed_rows;) {
        const bool has_cluster = hits.of_row[row] != tpc_no_cluster;
        if (!has_cluster && row > seed_end) continue;
        if (!propagate(in.filter, t, in.row_x[row])) {
            for (uint32_t below = lowest_before; below <= row; ++below) {
                hits.n -= hits.of_row[below] != tpc_no_cluster ? 1u : 0u;
                hits.of_row[below] = static_cast<uint16_t>(tpc_no_cluster);
            }
            break;
        }
        uint32_t number = hits.of_row[row];
        if (has_cluster) {
            const tpc_point point = in.point(row, number);
            // The first three clusters determine the track.
            if (fitted >= 3u &&
                distance2(t, errors_at(in.filter, t, point.z, point.pad), point.y, point.z) > in.max_outlier_chi2) {
                hits.of_row[row] = static_cast<uint16_t>(tpc_no_cluster);
                --hits.n;
                number = tpc_no_cluster;
            }
        } else {
            number =
                nearest_cluster(in.filter, t, in.rows[row], in.places, in.begins, in.pads[row], in.max_chi2, crowded);
            if (number != tpc_no_cluster) {
                hits.of_row[row] = static_cast<uint16_t>(number);
                ++hits.n;
            }
        }
        if (number == tpc_no_cluster) {
            if (row < lowest_before) ++missed;
            continue;
        }
        const tpc_point point = in.point(row, number);
        update(t, errors_at(in.filter, t, point.z, point.pad), point.y, point.z);
        ++fitted;
        hits.first = min_of(hits.first, row);
        missed = 0;
    }
    while (hits.first < hits.last && hits.of_row[hits.first] == tpc_no_cluster) ++hits.first;
    return true;
}

/// The tracklet of a start hit; false if there is none with enough clusters.
__device__ bool construct_tracklet(const tracklet_input& in, uint32_t start, tracklet_hits& hits, bool& crowded)
{
    uint32_t seed_end = 0;
    return construct_upwards(in, start >> 16, start & 0xFFFFu, hits, seed_end, crowded) &&
           construct_downwards(in, seed_end, hits, crowded) && hits.n >= in.min_clusters;
}

/// The input of the slice of a block, for any kernel with its columns and constants.
template <typename Parameters>
__device__ tracklet_input tracklet_input_of(const Parameters& p, const tpc_row* rows, uint32_t part)
{
    const uint32_t first = p.tpc_clusters.first(part);
    return {rows,
            p.tpc_clusters.places + first,
            p.tpc_bins.begin + p.tpc_bins.first(part),
            p.tpc_clusters.next + first,
            p.tpc.geometry,
            p.tpc.geometry + tpc_rows + tpc_numbers_after_rows,
            filter_of(p, p.tpc.geometry + tpc_rows),
            p.max_seed_chi2,
            p.max_chi2,
            p.max_outlier_chi2,
            p.max_missed_rows,
            p.min_clusters};
}

}  // namespace hlt
