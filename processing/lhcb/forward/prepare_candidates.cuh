// Before the forward search: no VELO track has a candidate, no SciFi hit an owner, and hits are found by bins of x
// (docs/physics/long-tracks.md).
//
// In:  scifi_hits.{count, zone_offset, x}, velo_tracks.count.
// Out: forward_candidates.{hit_count, ut_track} [VELO track], scifi_hits.owner [hit], scifi_hits.bins [event][24][128].
// One block per event; threads stride over candidates, hits and bins. A hit fills those bins that begin with it, each
// of which is filled once. All are cleared before, so that hits which do not ascend leave no place that leads out of
// the event.
#pragma once

#include "lhcb/forward/generated/forward_prepare_candidates.h"
#include "lhcb/forward/scifi_zones.cuh"
#include "lhcb/ut/generated/ut_types.h"

HLT_KERNEL(forward_prepare_candidates)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t n_tracks = hlt::min_of(p.velo_tracks.count[event], hlt::max_long_tracks);
    const uint32_t first_candidate = p.forward_candidates.first(event), first_hit = p.scifi_hits.first(event);
    const uint32_t n_hits = p.scifi_hits.count[event];
    for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x) {
        p.forward_candidates.hit_count[first_candidate + i] = 0;
        p.forward_candidates.ut_track[first_candidate + i] = hlt::no_ut_track;
    }
    if (n_hits == 0u || n_tracks == 0u) return;
    for (uint32_t i = threadIdx.x; i < n_hits; i += blockDim.x) p.scifi_hits.owner[first_hit + i] = hlt::no_bid;

    constexpr uint32_t n_bins = hlt::n_scifi_zones * hlt::scifi_bin_stride;
    const hlt::event_column<uint16_t> bins(p.scifi_hits.bins, event * n_bins);
    const hlt::event_column<const float> x(p.scifi_hits.x, first_hit);
    for (uint32_t i = threadIdx.x; i < n_bins; i += blockDim.x) bins[i] = 0;
    hlt::block_barrier();
    for (uint32_t zone = 0; zone < hlt::n_scifi_zones; ++zone) {
        const hlt::event_column<uint16_t> of_zone = bins.from(zone * hlt::scifi_bin_stride);
        const uint16_t* const ends = p.scifi_hits.zone_offset + event * hlt::scifi_zone_stride + zone;
        const uint32_t begin = ends[0], end = ends[1];
        for (uint32_t i = begin + threadIdx.x; i <= end; i += blockDim.x) {
            const uint32_t from = i == begin ? 0u : hlt::scifi_bin(x[i - 1u]) + 1u;
            const uint32_t to = i == end ? hlt::n_scifi_bins : hlt::scifi_bin(x[i]);
            for (uint32_t bin = from; bin <= to; ++bin) of_zone[bin] = static_cast<uint16_t>(i);
        }
    }
}
