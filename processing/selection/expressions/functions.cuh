// Functions that selection lines use, defined for every number and with the same result on every back end
// (float_functions.py does the same with NumPy, bit by bit).
#pragma once

#include "framework/device/math.cuh"

namespace hlt::lines {

__device__ float not_a_number() { return __uint_as_float(0x7FC00000u); }

__device__ float absolute(float x) { return __uint_as_float(__float_as_uint(x) & 0x7FFFFFFFu); }

/// Rounded as IEEE 754 says; NaN below 0.
__device__ float square_root(float x) { return sqrtf(x); }

/// The smaller of two numbers; NaN if one is.
__device__ float minimum(float a, float b) { return (a < b) | (a != a) ? a : b; }

/// The larger of two numbers; NaN if one is.
__device__ float maximum(float a, float b) { return (a > b) | (a != a) ? a : b; }

/// ln(x) as `logarithm`, for every x: -inf of 0, NaN of what is negative.
__device__ float natural_logarithm(float x)
{
    constexpr float smallest_normal = 1.17549435e-38f;
    constexpr float two_to_23 = 8388608.f;
    constexpr float ln_two_to_23 = 15.9423847f;
    const float infinity = __uint_as_float(0x7F800000u);
    const bool is_small = x < smallest_normal;
    const float inside = (x > 0.f) & (x < infinity) ? (is_small ? x * two_to_23 : x) : 1.f;
    const float result = logarithm(inside) - (is_small ? ln_two_to_23 : 0.f);
    return x > 0.f ? (x < infinity ? result : infinity) : (x == 0.f ? -infinity : not_a_number());
}

/// exp(x) for every x, relative error below 1e-6; 0 for x <= -87, inf for x >= 88. As `exp_negative`.
__device__ float exponential(float x)
{
    constexpr float log2_e = 1.44269504f;
    constexpr float ln2_high = 0.693145752f;
    constexpr float ln2_low = 1.42860677e-6f;
    constexpr float lowest = -87.f, highest = 88.f;
    const float inside = (x > lowest) & (x < highest) ? x : 0.f;
    const int32_t exponent = static_cast<int32_t>(inside * log2_e + (inside < 0.f ? -0.5f : 0.5f));
    const float n = static_cast<float>(exponent);
    const float r = (inside - n * ln2_high) - n * ln2_low;
    float p = 1.f / 720.f;
    p = p * r + 1.f / 120.f;
    p = p * r + 1.f / 24.f;
    p = p * r + 1.f / 6.f;
    p = p * r + 0.5f;
    p = p * r + 1.f;
    p = p * r + 1.f;
    const float result = p * __uint_as_float(static_cast<uint32_t>(exponent + 127) << 23);
    const float infinity = __uint_as_float(0x7F800000u);
    return x < highest ? (x > lowest ? result : 0.f) : (x >= highest ? infinity : not_a_number());
}

}  // namespace hlt::lines
