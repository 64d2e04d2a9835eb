// Before the forward search: no VELO track has a candidate, no SciFi hit an owner, and hits are found by bins of x
// (docs/physics/long-tracks.md).
//
// In:  scifi_hits.{count, zone_offset, x}, velo_tracks.count.
// Out: forward_candidates.{hit_count, ut_track} [VELO track], scifi_hits.owner [hit], scifi_hits.bins [event][24][272],
//      scifi_hits.cells [event][24 * 256 + 8].
// One block per event; threads stride over candidates and hits. A hit fills those bins that begin with it. From the bin
// of one hit to that of the next none is left out, also if hits do not ascend: all are filled, with hits of the zone.
#pragma once

#include "lhcb/forward/generated/forward_prepare_candidates.h"
#include "lhcb/forward/scifi_zones.cuh"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

/// Set bins `from` .. `to` to a value. The CPU sets as many behind them as a vector holds, which come later.
__device__ void fill_bins(const event_column<uint16_t>& bins, uint32_t from, uint32_t to, uint32_t value)
{
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    for (uint32_t bin = from; bin <= to; ++bin) bins[bin] = static_cast<uint16_t>(value);
#else
    constexpr uint32_t n_at_once = 16;
    static_assert(n_scifi_bins + n_at_once <= scifi_bin_stride);
    uint16_t values[n_at_once];
    for (uint16_t& each : values) each = static_cast<uint16_t>(value);
    for (uint32_t bin = from; bin == from || bin <= to; bin += n_at_once)
        std::memcpy(&bins[bin], values, sizeof values);
#endif
}

}  // namespace hlt

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

    uint32_t* const cells = p.scifi_hits.cells + event * hlt::scifi_cell_stride;
    hlt::zero_words(cells, hlt::scifi_cell_stride);
    hlt::block_barrier();
    const hlt::event_column<uint16_t> bins(p.scifi_hits.bins, event * hlt::n_scifi_zones * hlt::scifi_bin_stride);
    const hlt::event_column<const float> x(p.scifi_hits.x, first_hit);
    for (uint32_t zone = 0; zone < hlt::n_scifi_zones; ++zone) {
        const hlt::event_column<uint16_t> of_zone = bins.from(zone * hlt::scifi_bin_stride);
        const uint16_t* const ends = p.scifi_hits.zone_offset + event * hlt::scifi_zone_stride + zone;
        const uint32_t begin = ends[0], end = ends[1];
        for (uint32_t i = begin + threadIdx.x; i <= end; i += blockDim.x) {
            const uint32_t from = i == begin ? 0u : hlt::scifi_cell(x[i - 1u]) / hlt::scifi_cells_per_bin + 1u;
            const uint32_t cell = i == end ? 0u : hlt::scifi_cell(x[i]);
            const uint32_t to = i == end ? hlt::n_scifi_bins : cell / hlt::scifi_cells_per_bin;
            if (i < end)
                atomicOr(&cells[zone * hlt::n_scifi_bins + cell / hlt::scifi_cells_per_bin],
                         1u << cell % hlt::scifi_cells_per_bin);
            hlt::fill_bins(of_zone, from, to, i);
        }
    }
}
