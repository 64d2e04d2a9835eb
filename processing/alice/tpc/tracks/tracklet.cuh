// The tracklet of a seed (D. Rohr, diploma thesis, Heidelberg, 2010, section 2.3.4).
//
// Up: the seed is fitted, then the nearest cluster of each row is added. Down: a new fit from the uppermost cluster
// inwards adds clusters in the rows that the seed leaves out, then below it; it drops clusters that are too far away.
// The thesis does not say from which parameters the way down begins; with a new fit they know all clusters above.
// A tracklet advances by steps of one row, so that each schedule runs the same
// code in its own order.
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

/// Clusters of a tracklet by row, tpc_no_cluster for a row without; other rows than first to last have no meaning. The
/// memory of one thread: other memory needs the same two functions to take part in the steps below.
struct tracklet_hits {
    uint16_t of_row[tpc_rows];
    uint32_t first, last, n;

    __device__ uint32_t cluster(uint32_t row) const { return of_row[row]; }
    __device__ void set(uint32_t row, uint32_t number) { of_row[row] = static_cast<uint16_t>(number); }
};

/// What the next step of a tracklet does. `seed` adds the next cluster of the chain, `up` searches above it, `down`
/// goes inwards; `top` is between them and waits for turn_tracklet. The tracklet is `found`, or there is `none`.
enum class tracklet_stage : uint32_t { seed, up, top, down, found, none };

/// A tracklet between two steps.
struct tracklet_progress {
    tpc_state t;
    tracklet_stage stage;
    uint32_t row;             // of the next step
    uint32_t first, last, n;  // its rows with a cluster, and its clusters
    uint32_t missed;          // rows without a cluster since the last one
    uint32_t link;            // next cluster of the seed
    uint32_t seed_end;        // last row of the seed
    uint32_t lowest_before;   // first row of the seed
    uint32_t fitted;          // clusters of the fit downwards

    __device__ bool goes_up() const { return stage == tracklet_stage::seed || stage == tracklet_stage::up; }
    __device__ bool goes_down() const { return stage == tracklet_stage::down; }
    __device__ bool has_steps() const { return goes_up() || goes_down(); }
};

/// The seed is fitted: the search above it follows, or nothing if its clusters lie on no track.
__device__ void end_seed(const tracklet_input& in, tracklet_progress& at)
{
    at.seed_end = at.last;
    at.row = at.last + 1u;
    const bool is_bad = at.n < 3u || at.t.chi2 > in.max_seed_chi2 * static_cast<float>(2u * at.n - 5u);
    at.stage = is_bad ? tracklet_stage::none : at.row < tpc_rows ? tracklet_stage::up : tracklet_stage::top;
}

/// The tracklet of a start hit before its first step.
template <typename Hits>
__device__ void begin_tracklet(const tracklet_input& in, uint32_t start, Hits& hits, tracklet_progress& at)
{
    // The circle through the first, the middle and the last of up to eleven clusters.
    const uint32_t start_row = start >> 16, number = start & 0xFFFFu;
    uint32_t chain[11], n_chain = 0;
    for (uint32_t row = start_row, link = number; link != tpc_no_cluster && n_chain < 11u; row += 2u) {
        chain[n_chain++] = link;
        link = in.next[in.rows[row].first + link];
    }
    const uint32_t middle = (n_chain - 1u) / 2u;
    const tpc_point a = in.point(start_row, number);
    at.stage = tracklet_stage::none;
    at.row = at.first = at.last = at.lowest_before = at.seed_end = start_row;
    at.n = at.fitted = 1;
    at.missed = 0;
    at.link = tpc_no_cluster;
    if (!start_state(in.filter, a, in.point(start_row + 2u * middle, chain[middle]),
                     in.point(start_row + 2u * (n_chain - 1u), chain[n_chain - 1u]), true, at.t))
        return;
    hits.set(start_row, number);
    at.link = in.next[in.rows[start_row].first + number];
    at.row = start_row + 2u;
    at.stage = tracklet_stage::seed;
    if (at.link == tpc_no_cluster) end_seed(in, at);
}

/// The circle through three clusters of the upper half of a tracklet, at the last of them.
template <typename Hits>
__device__ bool state_at_last(const tracklet_input& in, const Hits& hits, const tracklet_progress& at, tpc_state& t)
{
    const uint32_t step = min_of((at.n - 1u) / 2u, 8u);
    tpc_point points[3];
    uint32_t seen = 0, found = 0;
    for (uint32_t row = at.last + 1u; row-- > at.first && found < 3u;) {
        const uint32_t number = hits.cluster(row);
        if (number == tpc_no_cluster) continue;
        if (seen++ == step * found) points[found++] = in.point(row, number);
    }
    return found == 3u && start_state(in.filter, points[2], points[1], points[0], false, t);
}

/// All rows are done: the tracklet is kept if it has enough clusters.
template <typename Hits>
__device__ void end_tracklet(const tracklet_input& in, const Hits& hits, tracklet_progress& at)
{
    while (at.first < at.last && hits.cluster(at.first) == tpc_no_cluster) ++at.first;
    at.stage = at.n >= in.min_clusters ? tracklet_stage::found : tracklet_stage::none;
}

/// To the next row below that has a cluster or lies below the end of the seed: the way up has searched in the others.
template <typename Hits>
__device__ void next_row_down(const tracklet_input& in, const Hits& hits, tracklet_progress& at)
{
    do {
        if (at.row == 0u) {
            end_tracklet(in, hits, at);
            return;
        }
        --at.row;
    } while (at.row > at.seed_end && hits.cluster(at.row) == tpc_no_cluster);
}

/// From the way up to the way down: a new fit begins at the uppermost cluster.
template <typename Hits>
__device__ void turn_tracklet(const tracklet_input& in, const Hits& hits, tracklet_progress& at)
{
    at.stage = tracklet_stage::none;
    if (!state_at_last(in, hits, at, at.t)) return;
    at.stage = tracklet_stage::down;
    at.missed = 0;
    at.fitted = 1;
    at.row = at.last;
    next_row_down(in, hits, at);
}

/// The track turns away before the next row. The rest of a seed is left out, and so are clusters below.
template <typename Hits>
__device__ void leave_row(const tracklet_input& in, Hits& hits, tracklet_progress& at)
{
    if (at.stage == tracklet_stage::seed) {
        end_seed(in, at);
    } else if (at.stage == tracklet_stage::up) {
        at.stage = tracklet_stage::top;
    } else {
        for (uint32_t below = at.lowest_before; below <= at.row; ++below) {
            at.n -= hits.cluster(below) != tpc_no_cluster ? 1u : 0u;
            hits.set(below, tpc_no_cluster);
        }
        end_tracklet(in, hits, at);
    }
}

/// One row: the next cluster of the seed, the cluster that the way up has found if it is not too far away, or the
/// nearest one. All stages have one code, so that lanes of a warp in different stages run together.
template <typename Hits>
__device__ void step_tracklet(const tracklet_input& in, Hits& hits, tracklet_progress& at, bool& crowded)
{
    const bool in_seed = at.stage == tracklet_stage::seed, is_up = at.goes_up();
    const uint32_t row = at.row;
    if (!propagate(in.filter, at.t, in.row_x[row])) {
        leave_row(in, hits, at);
        return;
    }
    const bool is_known = !is_up && row >= at.lowest_before;
    uint32_t number = in_seed ? at.link : is_known ? hits.cluster(row) : tpc_no_cluster;
    const bool had_cluster = is_known && number != tpc_no_cluster;
    if (number == tpc_no_cluster)
        number =
            nearest_cluster(in.filter, at.t, in.rows[row], in.places, in.begins, in.pads[row], in.max_chi2, crowded);
    bool takes = number != tpc_no_cluster;
    if (takes) {
        const tpc_point point = in.point(row, number);
        const tpc_errors errors = errors_at(in.filter, at.t, point.z, point.pad);
        // On the way down, the first three clusters determine the track.
        takes = !had_cluster || at.fitted < 3u || !(distance2(at.t, errors, point.y, point.z) > in.max_outlier_chi2);
        if (takes) update(at.t, errors, point.y, point.z);
    }
    hits.set(row, takes ? number : tpc_no_cluster);
    if (takes != had_cluster) at.n = takes ? at.n + 1u : at.n - 1u;
    if (takes) {
        at.last = is_up ? row : at.last;
        at.first = min_of(at.first, row);
        at.missed = 0;
        ++at.fitted;
    } else if (!is_known) {
        ++at.missed;
    }
    if (in_seed) {
        hits.set(row - 1u, tpc_no_cluster);
        at.row = row + 2u;
        at.link = in.next[in.rows[row].first + number];
        if (at.link == tpc_no_cluster) end_seed(in, at);
    } else if (is_up) {
        at.row = row + 1u;
        if (at.missed > in.max_missed_rows || at.row == tpc_rows) at.stage = tracklet_stage::top;
    } else if (at.missed > in.max_missed_rows) {
        end_tracklet(in, hits, at);
    } else {
        next_row_down(in, hits, at);
    }
}

/// All remaining steps of a tracklet.
template <typename Hits>
__device__ void finish_tracklet(const tracklet_input& in, Hits& hits, tracklet_progress& at, bool& crowded)
{
    while (at.goes_up()) step_tracklet(in, hits, at, crowded);
    if (at.stage == tracklet_stage::top) turn_tracklet(in, hits, at);
    while (at.goes_down()) step_tracklet(in, hits, at, crowded);
}

/// The tracklet of a start hit; false if there is none with enough clusters.
__device__ bool construct_tracklet(const tracklet_input& in, uint32_t start, tracklet_hits& hits, bool& crowded)
{
    tracklet_progress at;
    begin_tracklet(in, start, hits, at);
    finish_tracklet(in, hits, at, crowded);
    hits.first = at.first;
    hits.last = at.last;
    hits.n = at.n;
    return at.stage == tracklet_stage::found;
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
