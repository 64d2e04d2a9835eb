// Step V: tracks from tracklets (D. Rohr, diploma thesis, Heidelberg, 2010, section 2.3.5 and appendix B).
//
// In:  the start hits, the grid, the weights of the clusters. Out: tpc_slice_tracks.track, the clusters of the
// tracks, their numbers in each slice, a flag. A cluster belongs to the tracklet of its weight. Another tracklet may
// share it if it then has at most max_shared times as many shared clusters as own ones before; with the default it
// shares none. More than max_missed_rows rows without a cluster end a track; the rows above may make another one. Each
// track is fitted from its outermost to its innermost cluster. The fit leaves out clusters that are too far away; they
// stay clusters of the track. One block per slice; threads stride over tracklets, first to count, then to write, so
// that tracks come in the order of tracklets. Bounds: a track for each tpc_clusters_per_track clusters of the slice,
// and one more; three places of clusters for two clusters of the slice, and 24 more. Tracks beyond are left out.
#pragma once

#include "alice/tpc/generated/tpc_flags.h"
#include "alice/tpc/tracks/generated/tpc_select_tracks.h"
#include "alice/tpc/tracks/tracklet.cuh"
#include "framework/device/between_blocks.cuh"

namespace hlt {

/// Clusters of a track, rows upwards.
struct track_hits {
    uint8_t row[tpc_rows];
    uint16_t number[tpc_rows];
    uint32_t n;
};

/// Whether a track may have this number of shared clusters.
__device__ bool may_share(uint32_t shared, uint32_t own, float max_shared)
{
    return static_cast<float>(shared) <= max_shared * static_cast<float>(own);
}

/// The fewest own clusters of a track.
__device__ uint32_t fewest_own(uint32_t min_clusters, float max_shared)
{
    uint32_t own = 0;
    while (own < min_clusters && !may_share(min_clusters - own, own, max_shared)) ++own;
    return own;
}

/// Calls `take(track_hits)` for each track of the tracklet of a start hit with this number.
template <typename Take>
__device__ void for_tracks(const tracklet_input& in, const uint32_t* weights, const tracklet_hits& hits, uint32_t id,
                           float max_shared, const Take& take)
{
    const uint32_t own = hits.n << 16 | id;
    track_hits found;
    found.n = 0;
    uint32_t shared = 0, missed = 0;
    for (uint32_t row = hits.first; row <= hits.last; ++row) {
        const uint32_t number = hits.of_row[row];
        bool takes = false;
        if (number != tpc_no_cluster) {
            if (weights[in.rows[row].first + number] == own) {
                takes = true;
            } else if (may_share(shared + 1u, found.n - shared, max_shared)) {
                takes = true;
                ++shared;
            }
        }
        if (takes) {
            found.row[found.n] = static_cast<uint8_t>(row);
            found.number[found.n++] = static_cast<uint16_t>(number);
            missed = 0;
        } else {
            ++missed;
        }
        if (missed > in.max_missed_rows || row == hits.last) {
            if (found.n >= in.min_clusters) take(found);
            found.n = shared = missed = 0;
        }
    }
}

/// Clusters that a fit takes at any distance: before, it hardly knows the track.
constexpr uint32_t tpc_trusted_clusters = 10;

/// The fit of a track, at its innermost cluster, without clusters whose chi2 is above max_fit_chi2; false if it turns
/// too far.
__device__ bool fit_inwards(const tracklet_input& in, const track_hits& hits, float max_fit_chi2, tpc_state& t)
{
    const uint32_t last = hits.n - 1u, step = min_of(last / 2u, 8u);
    const auto point = [&](uint32_t i) { return in.point(hits.row[i], hits.number[i]); };
    if (!start_state(in.filter, point(last - 2u * step), point(last - step), point(last), false, t)) return false;
    uint32_t fitted = 1;
    for (uint32_t i = last; i-- > 0u;) {
        const tpc_point at = point(i);
        if (!propagate(in.filter, t, at.x)) return false;
        const tpc_errors errors = errors_at(in.filter, t, at.z, at.pad);
        if (fitted >= tpc_trusted_clusters && distance2(t, errors, at.y, at.z) > max_fit_chi2) continue;
        update(t, errors, at.y, at.z);
        if (!is_within(in.filter, t.s)) return false;
        ++fitted;
    }
    return true;
}

/// The record of a track of a slice; those of side C turn z to that of the global frame.
__device__ tpc_track record_of(const tpc_state& t, uint32_t slice, uint32_t n_clusters, uint32_t charge)
{
    const float side = slice < tpc_slices / 2u ? 1.f : -1.f;
    return {t.x,
            t.y,
            side * t.z,
            t.s,
            side * t.l,
            t.q,
            t.yy,
            t.zz,
            t.sy,
            t.ss,
            t.lz,
            t.ll,
            t.qy,
            t.qs,
            t.qq,
            t.chi2,
            charge,
            static_cast<uint16_t>(slice),
            static_cast<uint16_t>(n_clusters)};
}

}  // namespace hlt

HLT_KERNEL(tpc_select_tracks)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t kept_tracks, kept_hits;
    if (threadIdx.x == 0) kept_tracks = kept_hits = 0;
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);
    const uint32_t event = p.event_of(blockIdx.x);
    const uint32_t first = p.tpc_clusters.first(blockIdx.x);
    const uint32_t first_hit = p.tpc_slice_hits.first(blockIdx.x);
    const uint32_t n_places = p.tpc_slice_hits.first(blockIdx.x + 1u) - first_hit;
    const uint32_t* const inputs = p.tpc_clusters.inputs + first;
    const uint16_t* const charges = p.tpc_clusters.charges + first;
    const uint32_t first_input = p.tpc_slices.input[blockIdx.x].first_cluster;
    const uint32_t first_track = p.tpc_slice_tracks.first(blockIdx.x);
    const uint32_t n_track_places = p.tpc_slice_tracks.first(blockIdx.x + 1u) - first_track;
    const uint32_t first_start = p.tpc_start_hits.first(blockIdx.x);
    const hlt::tracklet_input in = hlt::tracklet_input_of(p, rows, blockIdx.x);
    const uint32_t* const weights = p.tpc_clusters.weights + first;
    const uint32_t n_starts = p.tpc_slices.start_hits[blockIdx.x];
    const uint32_t min_owned = hlt::fewest_own(p.min_clusters, p.max_shared);
    uint32_t n_tracks = 0, n_hits = 0;
    for (uint32_t base = 0; base < n_starts; base += blockDim.x) {
        const uint32_t id = base + threadIdx.x;
        hlt::tracklet_hits hits;
        hits.n = hits.first = 0;
        bool is_crowded = false;
        const bool is_tracklet =
            id < n_starts && p.tpc_start_hits.owned[first_start + id] >= min_owned &&
            hlt::construct_tracklet(in, p.tpc_start_hits.cluster[first_start + id], hits, is_crowded);
        uint32_t own_tracks = 0, own_hits = 0;
        if (is_tracklet)
            hlt::for_tracks(in, weights, hits, id, p.max_shared, [&](const hlt::track_hits& found) {
                hlt::tpc_state t;
                if (!hlt::fit_inwards(in, found, p.max_fit_chi2, t)) return;
                ++own_tracks;
                own_hits += found.n;
            });
        uint32_t more_tracks, more_hits;
        uint32_t track = n_tracks + hlt::block_exclusive_sum(own_tracks, scratch, more_tracks);
        uint32_t hit = n_hits + hlt::block_exclusive_sum(own_hits, scratch, more_hits);
        n_tracks += more_tracks;
        n_hits += more_hits;
        if (own_tracks == 0u) continue;
        hlt::for_tracks(in, weights, hits, id, p.max_shared, [&](const hlt::track_hits& found) {
            hlt::tpc_state t;
            if (!hlt::fit_inwards(in, found, p.max_fit_chi2, t)) return;
            if (track < n_track_places && hit + found.n <= n_places) {
                uint32_t charge = 0;
                for (uint32_t i = 0; i < found.n; ++i) {
                    const uint32_t input = inputs[rows[found.row[i]].first + found.number[i]];
                    p.tpc_slice_hits.cluster[first_hit + hit + i] = input;
                    charge += charges[input - first_input];
                }
                p.tpc_slice_tracks.track[first_track + track] =
                    hlt::record_of(t, blockIdx.x - event * hlt::tpc_slices, found.n, charge);
                // Tracks behind the first one without a place have none either.
                atomicMax(&kept_tracks, track + 1u);
                atomicMax(&kept_hits, hit + found.n);
            }
            ++track;
            hit += found.n;
        });
    }
    hlt::block_barrier();
    if (threadIdx.x != 0) return;
    if (kept_tracks != n_tracks)
        hlt::set_bits_between_blocks(&p.events.flags[event], uint32_t{hlt::too_many_slice_tracks});
    p.tpc_slices.tracks[blockIdx.x] = kept_tracks;
    p.tpc_slices.track_clusters[blockIdx.x] = kept_hits;
}
