// Preparation of the forward search on the CPU: the common kernel, but ascending hits fill the cells of a zone in
// order. The word of a bin stays in a register until the next bin begins, so no hit waits for a store of the hit
// before.
#pragma once

#include "lhcb/tracks/forward/prepare_candidates.cuh"
#include "lhcb/tracks/long/scifi_cells_cpu.h"

namespace hlt {

/// Fill the bins and cells (all 0 before) of a zone with the hits [begin, end). Returns false if the hits do not ascend
/// by cell; some words are then wrong.
inline bool fill_ascending_zone(const float* x, uint32_t begin, uint32_t end, uint16_t* bins, uint32_t* cells)
{
    // The last hit of a bin gives the start of the next one; a pass over empty bins copies this value, eight bins at a
    // time.
    static_assert(scifi_bin_stride > n_scifi_bins && scifi_bin_stride % 8u == 0u);
    static_assert(2u * scifi_hit_padding >= n_wide, "vectors reach behind the last hit");
    for (uint32_t bin = 0; bin < scifi_bin_stride; ++bin) bins[bin] = static_cast<uint16_t>(begin);
    constexpr uint32_t at_once = 16u * n_wide;
    uint32_t bin_of[at_once], bit_of[at_once], kept_of[at_once];
    uint32_t word = 0, descends = 0;
    uint_wide before{};
    for (uint32_t first = begin; first < end; first += at_once) {
        const uint32_t n = min_of(end - first, at_once);
        for (uint32_t i = 0; i < n; i += n_wide) {
            float_wide at;
            load_wide(at, x + first + i);
            const uint_wide cell = cells_of(at), cell_before = moved_in(before, cell), bin = cell / scifi_cells_per_bin;
            descends |= bits_of(cell < cell_before) & first_bits(n - i);
            before = cell;
            store_wide(bin_of + i, bin);
            store_wide(bit_of + i, in_all_lanes<uint_wide>(1u) << cell % scifi_cells_per_bin);
            store_wide(kept_of + i, bin == cell_before / scifi_cells_per_bin);
        }
        if (descends != 0u) return false;
        for (uint32_t i = 0; i < n; ++i) {
            word = (word & kept_of[i]) | bit_of[i];
            cells[bin_of[i]] = word;
            bins[bin_of[i] + 1u] = static_cast<uint16_t>(first + i + 1u);
        }
    }
    carry_scifi_bins(bins);
    return true;
}

}  // namespace hlt

HLT_CPU_FORM(forward_prepare_candidates)
{
    if (!hlt::compares_eight_lanes) return forward_prepare_candidates(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const uint32_t n_tracks = hlt::min_of(p.velo_tracks.count[event], hlt::max_long_tracks);
    const uint32_t first_candidate = p.forward_candidates.first(event), first_hit = p.scifi_hits.first(event);
    const uint32_t n_hits = p.scifi_hits.count[event];
    const uint16_t* const ends = p.scifi_hits.zone_offset + event * hlt::scifi_zone_stride;
    uint16_t* const bins = p.scifi_hits.bins + event * hlt::n_scifi_zones * hlt::scifi_bin_stride;
    uint32_t* const cells = p.scifi_hits.cells + event * hlt::scifi_cell_stride;
    bool ascends = true;
    if (n_hits != 0u && n_tracks != 0u) {
        std::memset(cells, 0, hlt::scifi_cell_stride * sizeof *cells);
        for (uint32_t zone = 0; ascends && zone < hlt::n_scifi_zones; ++zone)
            ascends = hlt::fill_ascending_zone(p.scifi_hits.x + first_hit, ends[zone], ends[zone + 1u],
                                               bins + zone * hlt::scifi_bin_stride, cells + zone * hlt::n_scifi_bins);
    }
    if (!ascends) {
        forward_prepare_candidates(p, dim3{event, 1, 1});
        return;
    }
    std::memset(p.forward_candidates.hit_count + first_candidate, 0, n_tracks);
    uint16_t* const ut_track = p.forward_candidates.ut_track + first_candidate;
    for (std::size_t i = 0; i < n_tracks; ++i) ut_track[i] = hlt::no_ut_track;
    if (n_tracks == 0u) return;
    uint32_t* const owner = p.scifi_hits.owner + first_hit;
    for (std::size_t i = 0; i < n_hits; ++i) owner[i] = hlt::no_bid;
}
