// Operations for rings on one number or on the lanes of a vector, besides those of lanes.cuh.
#pragma once

#include "framework/device/lanes.cuh"
#if !HLT_ON_GPU
#include "framework/device/wide_lanes.h"
#endif

namespace hlt {

/// The result of a comparison of lanes.
template <typename Lanes>
using lane_mask = decltype(Lanes{} < Lanes{});

/// Whether a comparison is true in a lane.
__device__ __forceinline__ bool any_lane(bool mask) { return mask; }
#if !HLT_ON_GPU
inline __attribute__((always_inline)) bool any_lane(const int8x32& mask) { return bits_of(mask) != 0u; }
#if defined(HLT_AVX512)
inline __attribute__((always_inline)) bool any_lane(const int_wide& mask) { return bits_of(mask) != 0u; }
#endif
#endif

/// `absolute` for numbers that are only compared: in one step, and 0 has no sign.
template <typename Lanes>
__device__ __forceinline__ Lanes magnitude(const Lanes& lanes)
{
#if HLT_ON_GPU
    return fabsf(lanes);
#else
    Lanes found;
    uint32_t bits[sizeof lanes / sizeof(float)];
    std::memcpy(bits, &lanes, sizeof lanes);
    for (uint32_t& each : bits) each &= 0x7fffffffu;
    std::memcpy(&found, bits, sizeof found);
    return found;
#endif
}

/// The larger number of each lane; the second one if a number is not a number.
template <typename Lanes>
__device__ __forceinline__ Lanes larger_of(const Lanes& one, const Lanes& other)
{
    return one > other ? one : other;
}

/// The smaller number of each lane; the second one if a number is not a number.
template <typename Lanes>
__device__ __forceinline__ Lanes smaller_of(const Lanes& one, const Lanes& other)
{
    return one < other ? one : other;
}
#if !HLT_ON_GPU && defined(__AVX2__)
// GCC makes a comparison and a choice of the general form.
inline __attribute__((always_inline)) float8 larger_of(const float8& one, const float8& other)
{
    return __builtin_ia32_maxps256(one, other);
}
inline __attribute__((always_inline)) float8 smaller_of(const float8& one, const float8& other)
{
    return __builtin_ia32_minps256(one, other);
}
#endif
#if defined(HLT_AVX512)
inline __attribute__((always_inline)) float_wide larger_of(const float_wide& one, const float_wide& other)
{
    return (float_wide)_mm512_max_ps((__m512)one, (__m512)other);
}
inline __attribute__((always_inline)) float_wide smaller_of(const float_wide& one, const float_wide& other)
{
    return (float_wide)_mm512_min_ps((__m512)one, (__m512)other);
}
#endif

}  // namespace hlt
