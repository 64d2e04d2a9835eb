// Cells of SciFi zones for many places at once, on the CPU (scifi_zones.cuh).
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/tracks/long/scifi_zones.cuh"

namespace hlt {

/// scifi_cell for many places.
inline __attribute__((always_inline)) uint_wide cells_of(const float_wide& x)
{
    const float_wide at = (x - scifi_bins_begin) * scifi_cells_per_mm;
    constexpr float largest = static_cast<float>(n_scifi_bins * scifi_cells_per_bin - 1u);
    const float_wide zero{}, last = zero + largest;
    return (uint_wide) __builtin_convertvector(at > zero ? (at < last ? at : last) : zero, int_wide);
}

/// As may_have_hit for each lane: true if its zone may have a hit closer to x than `most`.
inline __attribute__((always_inline)) int_wide may_have_hit_wide(const uint32_t* cells, const uint_wide& zone,
                                                                 const float_wide& x, const float_wide& most)
{
    const uint_wide first = cells_of(x - (most + cell_margin));
    const uint_wide n_more = cells_of(x + (most + cell_margin)) - first;
    const uint_wide bit = first + zone * (n_scifi_bins * scifi_cells_per_bin);
    const uint_wide seen = words_at(cells, bit / 8u) >> bit % 8u;
    const uint_wide beyond = in_all_lanes<uint_wide>(2u) << (n_more & 31u);
    return ((seen & (beyond - 1u)) != 0u) | (n_more >= max_cells_at_once);
}

}  // namespace hlt
