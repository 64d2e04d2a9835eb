// PTX instructions on floating-point numbers. A computed NaN is the canonical one, as on the GPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "warp.h"

namespace ptx {

inline float canonical(float value) { return std::isnan(value) ? get<float>(0x7fffffffu) : value; }
inline float add_f32(float a, float b) { return canonical(a + b); }
inline float sub_f32(float a, float b) { return canonical(a - b); }
inline float mul_f32(float a, float b) { return canonical(a * b); }
inline float div_f32(float a, float b) { return canonical(a / b); }
inline float fma_f32(float a, float b, float c) { return canonical(std::fma(a, b, c)); }
inline float rcp_f32(float a) { return canonical(1.0f / a); }
inline float sqrt_f32(float a) { return canonical(std::sqrt(a)); }
inline float neg_f32(float a) { return -a; }
inline float abs_f32(float a) { return std::fabs(a); }
/// For a NaN and a number the result is the number; +0 is greater than -0.
inline float min_f32(float a, float b)
{
    if (std::isnan(a)) return canonical(b);
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}
inline float max_f32(float a, float b)
{
    if (std::isnan(a)) return canonical(b);
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a < b ? b : a;
}

/// Rounds towards zero; NaN gives 0, values out of range give the nearest representable integer.
template <typename To>
To round_to_zero(float value)
{
    if (std::isnan(value)) return 0;
    const double whole = std::trunc(static_cast<double>(value));
    if (whole <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (whole >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(whole);
}

// ---- comparisons: names that end in u are also true for a NaN

inline bool is_unordered(float a, float b) { return std::isnan(a) || std::isnan(b); }
inline bool is_ordered(float a, float b) { return !is_unordered(a, b); }
inline bool ne_ordered(float a, float b) { return is_ordered(a, b) && a != b; }
inline bool equ(float a, float b) { return is_unordered(a, b) || a == b; }
inline bool ltu(float a, float b) { return !(a >= b); }
inline bool leu(float a, float b) { return !(a > b); }
inline bool gtu(float a, float b) { return !(a <= b); }
inline bool geu(float a, float b) { return !(a < b); }

}  // namespace ptx
