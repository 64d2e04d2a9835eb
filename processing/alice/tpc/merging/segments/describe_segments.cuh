// Both ends of each segment, its rows, and its bin.
//
// In:  the tracks of an event with their clusters. Out: tpc_track_clusters.hit, tpc_tracks.first_hit, ends, rows, bin.
// The fit of a track is the first iteration: its first steps use parameters that it hardly knows, which moves z and
// the slope of a short segment by several errors. Second iterations from its result give the ends: the fit outwards the
// outer one, and from there the fit inwards the inner one. If the fit outwards fails, the first iteration outwards
// gives the outer end, and the track the inner one, as where the fit inwards fails. A segment whose fit turns too far
// has no outer end: its direction is 0. Clusters of the event lie far apart in memory, so they are read once, into the
// order of the tracks. One block per slice; threads stride over its tracks. Bounds: those of the tracks.
#pragma once

#include "alice/tpc/merging/segments/generated/tpc_describe_segments.h"
#include "alice/tpc/merging/segments/segment_end.cuh"

namespace hlt {

/// The first fit of a segment from its first to its last cluster, without clusters whose chi2 is above max_fit_chi2;
/// false if it turns too far. It has three clusters or more.
__device__ bool fit_outwards(const tpc_filter& filter, const tpc_places& places, const tpc_track_hit* hits, uint32_t n,
                             float max_fit_chi2, tpc_state& t)
{
    const uint32_t step = min_of((n - 1u) / 2u, 8u);
    if (!start_state(filter, places.point(hits[0]), places.point(hits[step]), places.point(hits[2u * step]), true, t))
        return false;
    uint32_t fitted = 1;
    for (uint32_t i = 1; i < n; ++i) {
        const tpc_point at = places.point(hits[i]);
        if (!propagate(filter, t, at.x)) return false;
        const tpc_errors errors = errors_at(filter, t, at.z, at.pad);
        if (fitted >= tpc_trusted_in_segment && distance2(t, errors, at.y, at.z) > max_fit_chi2) continue;
        update(t, errors, at.y, at.z);
        if (!is_within(filter, t.s)) return false;
        ++fitted;
    }
    return true;
}

/// A second iteration: the fit of a segment from a state at its first cluster (outwards) or its last one (inwards).
/// Clusters whose chi2 is above max_fit_chi2 are left out. False if it turns too far, if fewer than half of the
/// clusters are left, or if rounding makes a variance negative.
__device__ bool fit_again(const tpc_filter& filter, const tpc_places& places, const tpc_track_hit* hits, uint32_t n,
                          bool outwards, float max_fit_chi2, tpc_state& t)
{
    forget(t);
    uint32_t fitted = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const tpc_point at = places.point(hits[outwards ? i : n - 1u - i]);
        if (!propagate(filter, t, at.x)) return false;
        const tpc_errors errors = errors_at(filter, t, at.z, at.pad);
        if (distance2(t, errors, at.y, at.z) > max_fit_chi2) continue;
        update(t, errors, at.y, at.z);
        if (!is_within(filter, t.s)) return false;
        ++fitted;
    }
    return 2u * fitted >= n && has_variances(t);
}

}  // namespace hlt

HLT_KERNEL(tpc_describe_segments)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t event = p.event_of(blockIdx.x);
    uint32_t number = 0, hit = 0;
    for (uint32_t part = event * hlt::tpc_slices; part < blockIdx.x; ++part) {
        number += p.tpc_slices.tracks[part];
        hit += p.tpc_slices.track_clusters[part];
    }
    const uint32_t n = p.tpc_slices.tracks[blockIdx.x], first = p.tpc_tracks.first(event) + number;
    const uint32_t* const clusters = p.tpc_track_clusters.cluster + p.tpc_track_clusters.first(event);
    hlt::tpc_track_hit* const hits = p.tpc_track_clusters.hit + p.tpc_track_clusters.first(event);
    const uint32_t of_event = p.tpc_event_clusters.first(event);
    const uint32_t* const place = p.tpc_event_clusters.place + of_event;
    const uint8_t* const row = p.tpc_event_clusters.row + of_event;
    const uint16_t* const charges = p.tpc_clusters.charges + of_event;
    const hlt::tpc_places places{p.tpc.geometry, p.tpc.geometry + hlt::tpc_rows + hlt::tpc_numbers_after_rows};
    const hlt::tpc_filter filter = hlt::filter_of(p, p.tpc.geometry + hlt::tpc_rows);
    const hlt::tpc_direction axis = hlt::axis_of_slice(blockIdx.x - event * hlt::tpc_slices);
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        uint32_t n_hits = 0;
        if (i < n) n_hits = p.tpc_tracks.track[first + i].n_clusters;
        uint32_t more;
        const uint32_t own = hit + hlt::block_exclusive_sum(n_hits, scratch, more);
        hit += more;
        if (i >= n) continue;
        for (uint32_t k = own; k < own + n_hits; ++k) {
            const uint32_t cluster = clusters[k];
            hits[k] = {place[cluster], charges[cluster], row[cluster], 0};
        }
        const hlt::tpc_track& track = p.tpc_tracks.track[first + i];
        hlt::tpc_state t = hlt::state_of(track);
        hlt::tpc_segment_end inner = hlt::end_of(filter, t, track.slice, axis, false), outer{};
        if (hlt::fit_again(filter, places, hits + own, n_hits, true, p.max_fit_chi2, t)) {
            outer = hlt::end_of(filter, t, track.slice, axis, true);
            if (hlt::fit_again(filter, places, hits + own, n_hits, false, p.max_fit_chi2, t))
                inner = hlt::end_of(filter, t, track.slice, axis, false);
        } else if (hlt::fit_outwards(filter, places, hits + own, n_hits, p.max_fit_chi2, t)) {
            outer = hlt::end_of(filter, t, track.slice, axis, true);
        }
        p.tpc_tracks.first_hit[first + i] = own;
        p.tpc_tracks.inner[first + i] = inner;
        p.tpc_tracks.outer[first + i] = outer;
        p.tpc_tracks.rows[2u * (first + i)] = hits[own].row;
        p.tpc_tracks.rows[2u * (first + i) + 1u] = hits[own + n_hits - 1u].row;
        p.tpc_tracks.bin[first + i] = static_cast<uint16_t>(hlt::bin_of_segment(inner));
    }
}
