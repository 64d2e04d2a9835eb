// Elementary functions with the same result on every back end.
//
// The libraries of CPU and GPU round atan2 and exp differently, and a trigger must decide alike on both. These
// polynomials use only +, -, * and /, which IEEE 754 rounds the same everywhere when contraction to FMA is off.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr float pi = 3.14159265358979f;

/// atan2(y, x) in radians, absolute error below 2e-6. Minimax polynomial of odd order 11 on [0, 1] after reduction to
/// the first octant (Abramowitz and Stegun 4.4 give the method). atan2(0, 0) is 0.
__device__ float atan2_approximate(float y, float x)
{
    const float abs_x = x < 0.f ? -x : x;
    const float abs_y = y < 0.f ? -y : y;
    const bool is_steep = abs_y > abs_x;
    const float larger = is_steep ? abs_y : abs_x;
    const float smaller = is_steep ? abs_x : abs_y;
    const float t = larger > 0.f ? smaller / larger : 0.f;
    const float s = t * t;
    float angle = -0.01172120f;
    angle = angle * s + 0.05265332f;
    angle = angle * s - 0.11643287f;
    angle = angle * s + 0.19354346f;
    angle = angle * s - 0.33262347f;
    angle = angle * s + 0.99997726f;
    angle = angle * t;
    angle = is_steep ? 0.5f * pi - angle : angle;
    angle = x < 0.f ? pi - angle : angle;
    return y < 0.f ? -angle : angle;
}

constexpr float exp_negative_zero = -87.f;

/// Numbers and integers of 32 bits. For the lanes of vectors wide_lanes.h has the same.
template <typename Number>
struct number_conversion;

template <>
struct number_conversion<float> {
    __device__ static int32_t truncated(float number) { return static_cast<int32_t>(number); }
    __device__ static float number_of(int32_t integer) { return static_cast<float>(integer); }
    __device__ static float number_of_bits(int32_t bits) { return __uint_as_float(static_cast<uint32_t>(bits)); }
    __device__ static int32_t mask_where(bool condition) { return condition ? -1 : 0; }
};

/// exp(x) for x <= 0, of a number or of lanes, relative error below 1e-6; 0 for x <= exp_negative_zero. Range reduction
/// by powers of two, then a polynomial of order 6 on [-ln 2 / 2, ln 2 / 2]. A mask in place of an early return lets
/// loops over it use vector registers.
template <typename Number>
__device__ __forceinline__ Number exp_negative(const Number& x)
{
    using conversion = number_conversion<Number>;
    constexpr float log2_e = 1.44269504f;
    constexpr float ln2_high = 0.693145752f;
    constexpr float ln2_low = 1.42860677e-6f;
    const Number inside = x > exp_negative_zero ? x : Number{} + exp_negative_zero;
    // Truncation of a negative number: round to nearest of x log2 e.
    const auto exponent = conversion::truncated(inside * log2_e - 0.5f);
    const Number n = conversion::number_of(exponent);
    const Number r = (inside - n * ln2_high) - n * ln2_low;
    Number p = r * (1.f / 720.f) + 1.f / 120.f;
    p = p * r + 1.f / 24.f;
    p = p * r + 1.f / 6.f;
    p = p * r + 0.5f;
    p = p * r + 1.f;
    p = p * r + 1.f;
    const auto mask = conversion::mask_where(x > exp_negative_zero);
    return p * conversion::number_of_bits((exponent + 127) << 23 & mask);
}

/// ln(x) for x > 0 that is no denormal number, absolute error below 1e-7 beside that of rounding. The exponent is split
/// off so that the rest lies between sqrt(1/2) and sqrt(2), then a polynomial of order 9 in x - 1 (S. Moshier, Cephes,
/// logf).
__device__ float logarithm(float x)
{
    constexpr float ln2_high = 0.693359375f;
    constexpr float ln2_low = -2.12194440e-4f;
    const uint32_t bits = __float_as_uint(x);
    const bool upper = (bits & 0x7FFFFFu) > 0x3504F3u;  // mantissa above sqrt(2)
    const float m = __uint_as_float((bits & 0x7FFFFFu) | (upper ? 0x3F000000u : 0x3F800000u)) - 1.f;
    const float exponent = static_cast<float>(static_cast<int32_t>(bits >> 23 & 0xFFu) - 127 + (upper ? 1 : 0));
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    const float m2 = m * m;
    return m + (p * m * m2 + exponent * ln2_low - 0.5f * m2) + exponent * ln2_high;
}

}  // namespace hlt
