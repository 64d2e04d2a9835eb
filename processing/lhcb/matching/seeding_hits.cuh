// The hits that the seeding works on: one event's, sorted by x inside each zone.
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/long_tracks/generated/long_types.h"
#include "lhcb/matching/generated/seeding_types.h"
#include "lhcb/scifi/generated/scifi_types.h"

namespace hlt {

__device__ uint32_t seeding_bin_of(float x)
{
    const float bin = (x + 0.5f * seeding_bin_width * static_cast<float>(n_seeding_bins)) * (1.f / seeding_bin_width);
    const float last = static_cast<float>(n_seeding_bins - 1u);
    return bin > 0.f ? static_cast<uint32_t>(min_of(bin, last)) : 0u;
}

/// The seeding hits of one event.
struct seeding_hit_view {
    const float* x;
    const uint16_t* zone_offset;
    const uint16_t* bins;
};

/// The hits of a layer in one half of the detector.
struct layer_hits {
    uint32_t first;
    uint32_t end;
    const uint16_t* bins;
};

__device__ layer_hits hits_of_layer(const seeding_hit_view& hits, uint32_t layer, uint32_t half)
{
    const uint32_t zone = 2u * layer + half;
    return {hits.zone_offset[zone], hits.zone_offset[zone + 1u], hits.bins + zone * n_seeding_bins};
}

/// The first hit of a layer at `where` or beyond; its end if there is none.
__device__ uint32_t first_hit_at(const float* x, const layer_hits& hits, float where)
{
    constexpr uint32_t few = scifi_hit_padding;
    const uint32_t bin = seeding_bin_of(where);
    uint32_t first = hits.bins[bin];
    uint32_t end = hits.bins[bin + 1u];
    while (end - first > few) {
        const uint32_t middle = (first + end) / 2u;
        if (x[middle] < where) {
            first = middle + 1u;
        } else {
            end = middle;
        }
    }
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    while (first < end && x[first] < where) ++first;
    return first;
#else
    // All at once in a vector register; scifi_hit_padding: places behind the last hit may be read.
    uint32_t n_below = 0;
    for (uint32_t i = 0; i < few; ++i)
        n_below += static_cast<uint32_t>(x[first + i] < where) & static_cast<uint32_t>(i < end - first);
    return first + n_below;
#endif
}

/// The hit closest to `where` and its residual.
struct close_hit {
    uint32_t hit;
    float residual;
};

/// The hit closest to `where` if it is no further away than `tolerance`, of two at one distance the one with the
/// larger x; otherwise no_scifi_hit.
__device__ close_hit nearest_hit(const float* x, const layer_hits& hits, float where, float tolerance)
{
    const uint32_t next = max_of(hits.first, min_of(first_hit_at(x, hits, where), hits.end));
    close_hit found{no_scifi_hit, 0.f};
    float distance = tolerance;
    if (next < hits.end && x[next] - where <= distance) {
        found = {next, x[next] - where};
        distance = found.residual;
    }
    if (next > hits.first) {
        const float before = where - x[next - 1u];
        if (before <= tolerance && (found.hit == no_scifi_hit || before < distance)) found = {next - 1u, -before};
    }
    return found;
}

}  // namespace hlt
