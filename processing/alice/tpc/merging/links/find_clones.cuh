// Second segments of a track in the same rows of a slice, as seeds of even and odd rows make them.
//
// In:  ends, rows and bins of the segments. Out: tpc_tracks.longer: for each segment the one with more clusters (of
// equal ones the first) in the same slice, on the same helix, that covers at least half of its rows; the best one by
// chi2. tpc_tracks.shorter: the first of those whose longer one a segment is. One block per slice; threads stride over
// its segments. Bounds: those of the tracks.
#pragma once

#include "alice/tpc/merging/links/generated/tpc_find_clones.h"
#include "alice/tpc/merging/segments/near_segments.cuh"

namespace hlt {

/// The inner end of a segment, with the way along the track.
__device__ tpc_segment_end reversed(const tpc_segment_end& end)
{
    return {end.x,   end.y,  end.z,  -end.along_x, -end.along_y, -end.curvature, -end.slope, end.dd,
            -end.df, end.ff, end.dk, -end.fk,      end.kk,       end.zz,         -end.lz,    end.ll};
}

/// Whether rows from a[0] to a[1] cover half of those from b[0] to b[1].
__device__ bool covers_half(const uint8_t* a, const uint8_t* b)
{
    const uint32_t low = max_of<uint32_t>(a[0], b[0]), high = min_of<uint32_t>(a[1], b[1]);
    return low <= high && 2u * (high - low + 1u) >= b[1] - b[0] + 1u;
}

}  // namespace hlt

HLT_KERNEL(tpc_find_clones)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t event = p.event_of(blockIdx.x), first = p.tpc_tracks.first(event);
    const uint32_t* const begins = p.tpc_tracks.bin_begins + event * (hlt::tpc_segment_bins + 1u);
    const hlt::tpc_segment_end* const inner = p.tpc_tracks.inner + first;
    const uint8_t* const rows = p.tpc_tracks.rows + 2u * first;
    const hlt::tpc_continuation limits{p.distance, p.angle, p.bend, p.z, p.slope, p.max_clone_gap, p.max_clone_gap};
    uint32_t number = 0;
    for (uint32_t part = event * hlt::tpc_slices; part < blockIdx.x; ++part) number += p.tpc_slices.tracks[part];
    const uint32_t end = number + p.tpc_slices.tracks[blockIdx.x];
    for (uint32_t i = number + threadIdx.x; i < end; i += blockDim.x) p.tpc_tracks.shorter[first + i] = hlt::tpc_no_end;
    hlt::block_barrier();
    for (uint32_t i = number + threadIdx.x; i < end; i += blockDim.x) {
        const uint32_t n = p.tpc_tracks.track[first + i].n_clusters;
        float best = p.max_chi2;
        uint32_t found = hlt::tpc_no_end;
        hlt::for_near_segments(begins, p.tpc_tracks.sorted + first, p.tpc_tracks.bin[first + i], [&](uint32_t other) {
            if (other < number || other >= end || other == i) return;
            const uint32_t of_other = p.tpc_tracks.track[first + other].n_clusters;
            if (of_other < n || (of_other == n && other > i)) return;
            if (!hlt::covers_half(rows + 2u * other, rows + 2u * i)) return;
            const float chi2 = hlt::continuation(limits, hlt::reversed(inner[other]), inner[i], false).chi2;
            if (chi2 < best || (chi2 == best && other < found)) {
                best = chi2;
                found = other;
            }
        });
        p.tpc_tracks.longer[first + i] = found;
        if (found != hlt::tpc_no_end) atomicMin(&p.tpc_tracks.shorter[first + found], i);
    }
}
