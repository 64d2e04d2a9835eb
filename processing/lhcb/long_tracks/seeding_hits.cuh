// The hits that the seeding works on: one event's, sorted by x inside each zone.
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/long_tracks/generated/long_types.h"
#include "lhcb/long_tracks/generated/seeding_types.h"
#include "lhcb/scifi/generated/scifi_types.h"

namespace hlt {

/// The hits of a layer in one half of the detector.
struct layer_hits {
    uint32_t first;
    uint32_t end;
};

__device__ layer_hits hits_of_layer(const uint16_t* zone_offset, uint32_t layer, uint32_t half)
{
    return {zone_offset[2u * layer + half], zone_offset[2u * layer + half + 1u]};
}

/// The first hit at `where` or beyond; the end if there is none.
__device__ uint32_t first_hit_at(const float* x, const layer_hits& hits, float where)
{
    uint32_t first = hits.first;
    uint32_t n = hits.end - hits.first;
    while (n > 0u) {
        const uint32_t half = n / 2u;
        const bool below = x[first + half] < where;
        first = below ? first + half + 1u : first;
        n = below ? n - half - 1u : half;
    }
    return first;
}

/// The hit closest to `where` and its residual.
struct close_hit {
    uint32_t hit;
    float residual;
};

/// The hit closest to `where` if it is no further away than `tolerance`, of two at one distance the one with the
/// larger x; otherwise no_scifi_hit.
__device__ close_hit closest_hit(const float* x, const layer_hits& hits, float where, float tolerance)
{
    const uint32_t next = first_hit_at(x, hits, where);
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
