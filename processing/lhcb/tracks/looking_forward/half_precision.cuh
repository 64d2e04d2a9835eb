// Rounding to half precision (IEEE 754 binary16), as for the operands of tensor cores, in code for every back end.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

/// The nearest number with half precision; of two, the even one. Larger numbers than 65504 become infinite.
__device__ float rounded_to_half(float x)
{
    constexpr float smallest_normal = 6.103515625e-5f;  // 2^-14
    constexpr float overflows = 65520.f;                // halfway from the largest number to the next power of two
    constexpr uint32_t sign_bit = 0x80000000u, dropped_bits = 0x1fffu, infinity = 0x7f800000u;
    const uint32_t bits = __float_as_uint(x), sign = bits & sign_bit, magnitude = bits ^ sign;
    const float size = __uint_as_float(magnitude);
    if (!(size < overflows)) return __uint_as_float(sign | infinity) + x;
    // Below the smallest normal number the spacing is 2^-24, that of floats from 0.5 on.
    const uint32_t rounded = size < smallest_normal
                                 ? __float_as_uint((size + 0.5f) - 0.5f)
                                 : (magnitude + (dropped_bits >> 1) + (magnitude >> 13 & 1u)) & ~dropped_bits;
    return __uint_as_float(sign | rounded);
}

}  // namespace hlt
