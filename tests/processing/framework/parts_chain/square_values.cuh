// Squares of the values of a slice, and their sum. One block per slice; one thread works.
#pragma once

#include "parts/generated/parts_square_values.h"

HLT_KERNEL(parts_square_values)
{
    if (!p.takes(blockIdx.x) || threadIdx.x != 0) return;
    const uint8_t* const values = p.slices.values + p.slices.first(blockIdx.x);
    uint16_t* const squares = p.found.squares + p.found.first(blockIdx.x);
    uint32_t total = 0;
    for (uint32_t i = 0; i < p.slices.count[blockIdx.x]; ++i) {
        squares[i] = static_cast<uint16_t>(values[i] * values[i]);
        total += squares[i];
    }
    p.found.total[blockIdx.x] = total;
}
