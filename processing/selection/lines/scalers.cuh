// Deterministic scalers: a hash of the line's name and the event decides, with the same result on every machine.
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

/// Whether the event passes the scaler, by a hash of the words that identify the event, in order.
template <uint32_t n>
__device__ bool scaler_passes(const line_scaler& scaler, const uint32_t (&event)[n])
{
    if (scaler.always != 0) return true;
    uint32_t state = scaler.seed;
    for (uint32_t i = 0; i < n; ++i) state = scaler_mix(state + event[i]);
    return state < scaler.limit;
}

/// Sets bits in `decisions` for those of the set lines whose scalers the event passes.
template <uint32_t n>
__device__ void scale_lines(const line_record* table, uint32_t n_lines, const uint32_t* selected,
                            const uint32_t (&event)[n], uint32_t* decisions)
{
    const auto scale = [&](uint32_t line) {
        if (scaler_passes(table[line].prescale, event) && scaler_passes(table[line].postscale, event))
            atomicOr(&decisions[line / 32u], 1u << line % 32u);
    };
#if HLT_ON_GPU
    for (uint32_t line = threadIdx.x; line < n_lines; line += blockDim.x)
        if ((selected[line / 32u] >> line % 32u & 1u) != 0) scale(line);
#else
    for (uint32_t word = threadIdx.x; word * 32u < n_lines; word += blockDim.x)
        for (uint32_t left = selected[word]; left != 0; left &= left - 1)
            scale(word * 32u + static_cast<uint32_t>(__builtin_ctz(left)));
#endif
}

}  // namespace hlt
