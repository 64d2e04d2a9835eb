// Functions of selection lines, defined for every number, with the same result on every back end (float_functions.py
// computes bit-identical results in NumPy). A `Number` is a float or lanes of floats.
#pragma once

#include "framework/device/math.cuh"

namespace hlt::lines {

__device__ float not_a_number() { return __uint_as_float(0x7FC00000u); }

template <typename Number>
__device__ __forceinline__ Number absolute(const Number& x)
{
    using as = number_words<Number>;
    return as::number(as::of(x) & 0x7FFFFFFFu);
}

/// Rounded according to IEEE 754; NaN below 0.
__device__ float square_root(float x) { return sqrtf(x); }

/// The smaller of two numbers; NaN if one is NaN.
template <typename Number>
__device__ __forceinline__ Number minimum(const Number& a, const Number& b)
{
    return (a < b) | (a != a) ? a : b;
}

/// The larger of two numbers; NaN if one is NaN.
template <typename Number>
__device__ __forceinline__ Number maximum(const Number& a, const Number& b)
{
    return (a > b) | (a != a) ? a : b;
}

/// ln(x) like `logarithm`, for every x: -inf for 0, NaN for negative numbers.
template <typename Number>
__device__ Number natural_logarithm(const Number& x)
{
    using as = number_words<Number>;
    constexpr float smallest_normal = 1.17549435e-38f;
    constexpr float two_to_23 = 8388608.f;
    constexpr float ln_two_to_23 = 15.9423847f;
    const float infinity = __uint_as_float(0x7F800000u);
    const auto is_small = x < smallest_normal;
    const Number inside = (x > 0.f) & (x < infinity) ? (is_small ? x * two_to_23 : x) : as::all(1.f);
    const Number result = logarithm(inside) - (is_small ? as::all(ln_two_to_23) : as::all(0.f));
    return x > 0.f ? (x < infinity ? result : as::all(infinity))
                   : (x == 0.f ? as::all(-infinity) : as::all(not_a_number()));
}

/// exp(x) for every x, relative error below 1e-6; 0 for x <= -87, inf for x >= 88.
template <typename Number>
__device__ Number exponential(const Number& x)
{
    using as = number_words<Number>;
    constexpr float lowest = -87.f, highest = 88.f;
    const Number inside = (x > lowest) & (x < highest) ? x : as::all(0.f);
    const auto exponent = as::truncated(inside * log2_e + (inside < 0.f ? as::all(-0.5f) : as::all(0.5f)));
    const Number result = exp_without_power(inside, exponent) * as::number((exponent + 127u) << 23);
    const float infinity = __uint_as_float(0x7F800000u);
    return x < highest ? (x > lowest ? result : as::all(0.f))
                       : (x >= highest ? as::all(infinity) : as::all(not_a_number()));
}

}  // namespace hlt::lines
