// The hits that the seeding works on: one event's, sorted by x inside each zone.
#pragma once

#include "lhcb/long_tracks/layers.cuh"
#include "lhcb/long_tracks/scifi_zones.cuh"
#include "lhcb/matching/generated/seeding_types.h"

namespace hlt {

/// The seeding hits of one event.
struct seeding_hit_view {
    event_column<const float> x;
    event_column<const uint16_t> bins;

    __device__ scifi_zone zone(uint32_t layer, uint32_t half) const { return {x, bins, 2u * layer + half}; }
    __device__ uint32_t count() const { return bins[n_scifi_zones * scifi_bin_stride - 1u]; }
};

/// The number of hits in the zone of a half that has most.
__device__ uint32_t largest_zone(const seeding_hit_view& hits, uint32_t half)
{
    uint32_t largest = 0;
    for (uint32_t layer = 0; layer < n_scifi_layers; ++layer) {
        const scifi_zone zone = hits.zone(layer, half);
        largest = max_of(largest, zone.end() - zone.begin());
    }
    return largest;
}

/// The hit closest to a place and how far beyond it lies; no_scifi_hit and 0 if there is none closer than `most`.
struct close_hit {
    uint32_t hit;
    float residual;
};

__device__ close_hit nearest_hit(const scifi_zone& zone, const event_column<const float>& x, float where, float most)
{
    const uint32_t hit = zone.nearest(where, most);
    return {hit, hit == no_scifi_hit ? 0.f : x[hit] - where};
}

constexpr uint32_t n_cells = scifi_cell_words * 32u;  // of a zone
constexpr uint32_t n_cell_words = 2u * n_x_layers * scifi_cell_words;
constexpr float cells_per_mm = scifi_bins_per_mm * static_cast<float>(scifi_cells_per_bin);

/// Larger for larger x. The last cells, as many as there are bits in a word, have no hits.
__device__ uint32_t cell_of(float x)
{
    const float at = (x - scifi_bins_begin) * cells_per_mm;
    constexpr float last = static_cast<float>(n_cells - 33u);
    return at > 0.f ? static_cast<uint32_t>(static_cast<int32_t>(at < last ? at : last)) : 0u;
}

template <typename Word>
__device__ Word* cells_of(Word* cells, uint32_t x_layer_number, uint32_t half)
{
    return cells + (2u * x_layer_number + half) * scifi_cell_words;
}

/// The cells that a window of hits up to `most` around a place covers, as bits from that of its lower end on.
__device__ uint32_t cells_of_window(float most)
{
    const float n = 2.02f * most * cells_per_mm + 2.f;
    return n < 32.f ? (1u << static_cast<uint32_t>(n)) - 1u : 0xffffffffu;
}

/// Whether a cell of a window has a hit; a window of more than 32 cells is as if it had one.
__device__ uint32_t has_hit_near(const uint32_t* of_zone, float where, float most, uint32_t window)
{
    const uint32_t cell = cell_of(where - most);
    const uint32_t shift = cell % 32u;
    const uint32_t bits = of_zone[cell / 32u] >> shift | of_zone[cell / 32u + 1u] << 1u << (31u - shift);
    return static_cast<uint32_t>((bits & window) != 0u || window == 0xffffffffu);
}

}  // namespace hlt
