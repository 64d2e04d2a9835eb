// The segments of an event, by bins.
//
// In:  tpc_tracks.bin. Out: tpc_tracks.bin_begins, sorted. One block per event; threads stride over the segments. The
// order inside a bin is not fixed; no result depends on it. Bounds: those of the tracks.
#pragma once

#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "alice/tpc/merging/generated/tpc_sort_segments.h"

HLT_KERNEL(tpc_sort_segments)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t n = p.tpc_tracks.count[event], first = p.tpc_tracks.first(event);
    uint32_t* const begins = p.tpc_tracks.bin_begins + event * (hlt::tpc_segment_bins + 1u);
    const uint16_t* const bins = p.tpc_tracks.bin + first;
    for (uint32_t i = threadIdx.x; i <= hlt::tpc_segment_bins; i += blockDim.x) begins[i] = 0;
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&begins[bins[i] + 1u], 1u);
    hlt::block_barrier();
    // The word behind that of a bin gets its first place, then its next one, and at the end the first one behind it.
    uint32_t running = 0;
    for (uint32_t base = 0; base < hlt::tpc_segment_bins; base += blockDim.x) {
        const uint32_t bin = base + threadIdx.x;
        const uint32_t own = bin < hlt::tpc_segment_bins ? begins[bin + 1u] : 0u;
        uint32_t more;
        const uint32_t before = running + hlt::block_exclusive_sum(own, scratch, more);
        running += more;
        if (bin < hlt::tpc_segment_bins) begins[bin + 1u] = before;
    }
    hlt::block_barrier();
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        p.tpc_tracks.sorted[first + atomicAdd(&begins[bins[i] + 1u], 1u)] = i;
}
