// Elementary functions with the same result on every back end.
//
// The libraries of CPU and GPU round atan2 and exp differently, but a trigger must decide alike on both. These
// polynomials use only +, -, * and /, which IEEE 754 rounds the same everywhere if contraction to FMA is off.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr float pi = 3.14159265358979f;

/// A `Number` is a float or, on the CPU, a vector of floats: a function of a `Number` has the same result in each lane.
/// Beside arithmetic, comparisons and `condition ? a : b`, such functions use these operations on the bits of numbers.
template <typename Number>
struct number_words
#if HLT_ON_GPU
    ;
#else
{
    typedef uint32_t words __attribute__((vector_size(sizeof(Number))));  // compilers ignore the attribute on an alias
    typedef int32_t integers __attribute__((vector_size(sizeof(Number))));

    static __forceinline__ Number all(float value) { return value - Number{}; }
    static __forceinline__ words of(const Number& number) { return (words)number; }
    static __forceinline__ Number number(const words& bits) { return (Number)bits; }
    static __forceinline__ words ones_where(const integers& comparison) { return (words)comparison & 1u; }
    static __forceinline__ words truncated(const Number& number)
    {
        return (words) __builtin_convertvector(number, integers);
    }
    static __forceinline__ Number converted(const words& integer)
    {
        return __builtin_convertvector((integers)integer, Number);
    }
};
#endif

template <>
struct number_words<float> {
    using words = uint32_t;

    static __device__ __forceinline__ float all(float value) { return value; }
    static __device__ __forceinline__ uint32_t of(float number) { return __float_as_uint(number); }
    static __device__ __forceinline__ float number(uint32_t bits) { return __uint_as_float(bits); }
    static __device__ __forceinline__ uint32_t ones_where(bool comparison) { return comparison ? 1u : 0u; }
    /// Conversion to a signed 32-bit integer, towards 0.
    static __device__ __forceinline__ uint32_t truncated(float number)
    {
        return static_cast<uint32_t>(static_cast<int32_t>(number));
    }
    /// Conversion from such an integer.
    static __device__ __forceinline__ float converted(uint32_t integer)
    {
        return static_cast<float>(static_cast<int32_t>(integer));
    }
};

/// atan2(y, x) in radians, absolute error below 2e-6. Minimax polynomial of odd order 11 on [0, 1] after reduction to
/// the first octant (Abramowitz and Stegun 4.4 give the method). atan2(0, 0) is 0.
template <typename Number>
__device__ Number atan2_approximate(const Number& y, const Number& x)
{
    using as = number_words<Number>;
    const Number abs_x = x < 0.f ? -x : x;
    const Number abs_y = y < 0.f ? -y : y;
    const auto is_steep = abs_y > abs_x;
    const Number larger = is_steep ? abs_y : abs_x;
    const Number smaller = is_steep ? abs_x : abs_y;
    const Number t = larger > 0.f ? smaller / larger : as::all(0.f);
    const Number s = t * t;
    Number angle = as::all(-0.01172120f);
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

/// 1 / ln 2.
constexpr float log2_e = 1.44269504f;

/// exp(x) / 2^exponent, for a number or for lanes, relative error below 1e-6; `exponent` is the integer nearest to x
/// log2(e). A polynomial of order 6 on [-ln 2 / 2, ln 2 / 2].
template <typename Number, typename Exponent>
__device__ __forceinline__ Number exp_without_power(const Number& x, const Exponent& exponent)
{
    constexpr float ln2_high = 0.693145752f;
    constexpr float ln2_low = 1.42860677e-6f;
    const Number n = number_words<Number>::converted(exponent);
    const Number r = (x - n * ln2_high) - n * ln2_low;
    Number p = r * (1.f / 720.f) + 1.f / 120.f;
    p = p * r + 1.f / 24.f;
    p = p * r + 1.f / 6.f;
    p = p * r + 0.5f;
    p = p * r + 1.f;
    return p * r + 1.f;
}

constexpr float exp_negative_zero = -87.f;

/// exp(x) for x <= 0, for a number or for lanes, relative error below 1e-6; 0 for x <= exp_negative_zero. A mask
/// instead of an early return lets the compiler vectorise loops over it.
template <typename Number>
__device__ __forceinline__ Number exp_negative(const Number& x)
{
    using as = number_words<Number>;
    const Number inside = x > exp_negative_zero ? x : Number{} + exp_negative_zero;
    // Truncation of a negative number: round to nearest of x log2 e.
    const auto exponent = as::truncated(inside * log2_e - 0.5f);
    const auto mask = 0u - as::ones_where(x > exp_negative_zero);
    return exp_without_power(inside, exponent) * as::number((exponent + 127u) << 23 & mask);
}

/// ln(x) for normal x > 0, absolute error below 1e-7 plus rounding. The exponent is split off so that the rest lies
/// between sqrt(1/2) and sqrt(2); then a polynomial of order 9 in x - 1 follows (S. Moshier, Cephes, logf).
template <typename Number>
__device__ Number logarithm(const Number& x)
{
    using as = number_words<Number>;
    constexpr float ln2_high = 0.693359375f;
    constexpr float ln2_low = -2.12194440e-4f;
    const auto bits = as::of(x);
    const auto upper = as::ones_where((bits & 0x7FFFFFu) > 0x3504F3u);  // 1: mantissa above sqrt(2)
    const Number m = as::number((bits & 0x7FFFFFu) | (0x3F800000u - (upper << 23))) - 1.f;
    const Number exponent = as::converted((bits >> 23 & 0xFFu) - 127u + upper);
    Number p = as::all(7.0376836292e-2f);
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    const Number m2 = m * m;
    return m + (p * m * m2 + exponent * ln2_low - 0.5f * m2) + exponent * ln2_high;
}

}  // namespace hlt
