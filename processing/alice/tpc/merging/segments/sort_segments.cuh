// The segments of an event, and the slopes and curvatures of their ends, by bins.
//
// In:  tpc_tracks.bin, inner, outer. Out: tpc_tracks.bin_begins, sorted, near_slope, near_curvature and their
// variances. One block per event; threads stride over the segments. The order inside a bin is not fixed; no result
// depends on it. Bounds: those of the tracks.
#pragma once

#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "alice/tpc/merging/segments/generated/tpc_sort_segments.h"
#include "alice/tpc/merging/segments/near_ends.cuh"
#include "alice/tpc/merging/segments/sort_by_bins.cuh"

HLT_KERNEL(tpc_sort_segments)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t first = p.tpc_tracks.first(event);
    const uint16_t* const bins = p.tpc_tracks.bin + first;
    const uint32_t n = p.tpc_tracks.count[event];
    const uint32_t* const sorted = p.tpc_tracks.sorted + first;
    hlt::sort_by_bins(
        n, hlt::tpc_segment_bins, [&](uint32_t i) { return uint32_t{bins[i]}; },
        p.tpc_tracks.bin_begins + event * (hlt::tpc_segment_bins + 1u), p.tpc_tracks.sorted + first, scratch);
    hlt::block_barrier();
    const hlt::tpc_ends ends{p.tpc_tracks.inner + first, p.tpc_tracks.outer + first};
    for (uint32_t i = threadIdx.x; i < 2u * n; i += blockDim.x) {
        const hlt::tpc_segment_end& end = ends[2u * sorted[i / 2u] + i % 2u];
        const uint32_t at = 2u * first + i;
        p.tpc_tracks.near_slope[at] = hlt::has_direction(end) ? end.slope : hlt::tpc_slope_of_no_end;
        p.tpc_tracks.near_curvature[at] = end.curvature;
        p.tpc_tracks.near_slope_variance[at] = end.ll;
        p.tpc_tracks.near_curvature_variance[at] = end.kk;
    }
}
