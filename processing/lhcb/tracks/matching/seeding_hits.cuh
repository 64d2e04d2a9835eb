// The hits for the seeding: those of one event, sorted by x inside each zone.
#pragma once

#include "lhcb/tracks/long/layers.cuh"
#include "lhcb/tracks/long/scifi_zones.cuh"
#include "lhcb/tracks/matching/generated/seeding_types.h"

namespace hlt {

/// The seeding hits of one event.
struct seeding_hit_view {
    event_column<const float> x;
    event_column<const uint16_t> bins;
    event_column<const uint32_t> cells;

    __device__ scifi_zone zone(uint32_t layer, uint32_t half) const { return {x, bins, cells, 2u * layer + half}; }
    __device__ uint32_t count() const { return bins[(n_scifi_zones - 1u) * scifi_bin_stride + n_scifi_bins]; }
};

/// The largest number of hits in a zone of a half.
__device__ uint32_t largest_zone(const seeding_hit_view& hits, uint32_t half)
{
    uint32_t largest = 0;
    for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
        const scifi_zone zone = hits.zone(layer, half);
        largest = max_of(largest, zone.end() - zone.begin());
    }
    return largest;
}

/// The hit closest to a place and its signed distance; no_scifi_hit and 0 if no hit is closer than `most`.
struct close_hit {
    uint32_t hit;
    float residual;
};

__device__ close_hit nearest_hit(const scifi_zone& zone, const event_column<const float>& x, float where, float most)
{
    const uint32_t hit = zone.nearest(where, most);
    return {hit, hit == no_scifi_hit ? 0.f : x[hit] - where};
}

/// The cells of an x layer.
__device__ const uint32_t* cells_of(const uint32_t* cells, uint32_t x_layer_number, uint32_t half)
{
    return cells + (2u * x_layer(x_layer_number) + half) * n_scifi_bins;
}

/// The cells of a window up to `most` around a place, as bits from the cell of its lower end on.
__device__ uint32_t cells_of_window(float most)
{
    const float n = 2.02f * most * scifi_cells_per_mm + 2.f;
    return n < 32.f ? (1u << static_cast<uint32_t>(n)) - 1u : 0xffffffffu;
}

/// True if a cell of a window has a hit. Also true for a window of more than 32 cells, and possibly for a window across
/// the end of the zone.
__device__ uint32_t has_hit_near(const uint32_t* of_zone, float where, float most, uint32_t window)
{
    const uint32_t cell = scifi_cell(where - most);
    const uint32_t shift = cell % 32u;
    const uint32_t bits = of_zone[cell / 32u] >> shift | of_zone[cell / 32u + 1u] << 1u << (31u - shift);
    return static_cast<uint32_t>((bits & window) != 0u || window == 0xffffffffu);
}

}  // namespace hlt
