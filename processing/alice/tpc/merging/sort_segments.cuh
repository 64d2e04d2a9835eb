// The segments of an event with their slopes and curvatures, by bins.
//
// In:  tpc_tracks.bin, inner, outer. Out: tpc_tracks.bin_begins, sorted, key. One block per event; threads stride over
// the segments. The order inside a bin is not fixed; no result depends on it. Bounds: those of the tracks.
#pragma once

#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "alice/tpc/merging/generated/tpc_sort_segments.h"
#include "alice/tpc/merging/segment_key.cuh"
#include "alice/tpc/merging/sort_by_bins.cuh"

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
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        p.tpc_tracks.key[first + i] =
            hlt::key_of(p.tpc_tracks.inner[first + sorted[i]], p.tpc_tracks.outer[first + sorted[i]], sorted[i]);
}
