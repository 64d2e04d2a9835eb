// Displaced tracks of negative charge, by bins.
//
// In:  tpc_merged_tracks.v0_bin. Out: v0_bin_begins, v0_partners. One block per event; threads stride over the merged
// tracks. The order inside a bin is not fixed; no result depends on it. Bounds: those of the merged tracks.
#pragma once

#include "alice/tpc/candidates/generated/tpc_candidate_types.h"
#include "alice/tpc/candidates/generated/tpc_sort_v0_tracks.h"
#include "alice/tpc/merging/segments/sort_by_bins.cuh"

HLT_KERNEL(tpc_sort_v0_tracks)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t first = p.tpc_merged_tracks.first(event);
    const uint16_t* const bins = p.tpc_merged_tracks.v0_bin + first;
    // Bins with tpc_v0_positive are beyond the last one.
    hlt::sort_by_bins(
        p.tpc_merged_tracks.count[event], hlt::tpc_v0_bins, [&](uint32_t i) { return uint32_t{bins[i]}; },
        p.tpc_merged_tracks.v0_bin_begins + event * (hlt::tpc_v0_bins + 1u), p.tpc_merged_tracks.v0_partners + first,
        scratch);
}
