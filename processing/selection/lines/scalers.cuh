// Deterministic scalers: a hash of a line's name and of the event decides, the same on every machine.
#pragma once

#include "selection/lines/generated/selection_types.h"

namespace hlt {

__device__ uint32_t scaler_mix(uint32_t state)
{
    state += state << 16;
    state ^= state >> 13;
    state += state << 4;
    state ^= state >> 7;
    state += state << 10;
    state ^= state >> 5;
    state += state << 8;
    state ^= state >> 16;
    return state;
}

/// Whether the event passes the scaler: a hash of the words that name the event, in their order.
template <uint32_t n>
__device__ bool scaler_passes(const line_scaler& scaler, const uint32_t (&event)[n])
{
    uint32_t state = scaler.seed;
    for (uint32_t i = 0; i < n; ++i) state = scaler_mix(state + event[i]);
    return scaler.always != 0 || state < scaler.limit;
}

}  // namespace hlt
