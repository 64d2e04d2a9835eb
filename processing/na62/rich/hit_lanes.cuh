// Loops over the hits of an event, for rings in lanes: a float with one ring, or a vector.
//
// A step of a loop takes one hit for all lanes. With AVX-512 it takes two: a ring has two lanes, one for hits with an
// even place and one for the others. So what a loop collects must not depend on the order of hits: integer sums, and
// the largest of keys. `joined_sum` and `joined_most` join the two lanes of a ring.
#pragma once

#include "na62/rich/generated/rich_types.h"
#include "na62/rich/ring_lanes.cuh"

namespace hlt {

/// Types of the lanes that go with floats. `ring_step`: lanes of a ring, and hits of a step. `mask`: in loops.
template <typename Lanes>
struct lanes_of;

template <>
struct lanes_of<float> {
    using ints = int32_t;
    using mask = bool;
    static constexpr uint32_t ring_step = 1;
};

#if !HLT_ON_GPU
template <>
struct lanes_of<float8> {
    using ints = int8x32;
    using mask = int8x32;
    static constexpr uint32_t ring_step = 1;
};
#if defined(HLT_AVX512)
template <>
struct lanes_of<float_wide> {
    using ints = int_wide;
    using mask = __mmask16;
    static constexpr uint32_t ring_step = 2;
};
#endif
#endif

template <typename Lanes>
using ints_of = typename lanes_of<Lanes>::ints;
template <typename Lanes>
using step_mask = typename lanes_of<Lanes>::mask;

/// Steps of a loop over n hits.
template <typename Lanes>
__device__ __forceinline__ uint32_t steps_of(uint32_t n)
{
    return (n + lanes_of<Lanes>::ring_step - 1u) / lanes_of<Lanes>::ring_step;
}

// One number.

__device__ __forceinline__ void load_step(float& value, const float* of, uint32_t step) { value = of[step]; }
__device__ __forceinline__ void load_step(int32_t& value, const int32_t* of, uint32_t step) { value = of[step]; }
__device__ __forceinline__ bool at_least(float one, float other) { return one >= other; }
__device__ __forceinline__ bool at_most(float one, float other) { return one <= other; }
__device__ __forceinline__ bool and_at_most(bool mask, float one, float other) { return mask && one <= other; }
__device__ __forceinline__ bool differs(int32_t one, int32_t other) { return one != other; }
__device__ __forceinline__ void add_where(bool mask, int32_t& sum, int32_t value) { sum += mask ? value : 0; }
__device__ __forceinline__ int32_t kept_where(bool mask, int32_t value) { return mask ? value : 0; }
__device__ __forceinline__ int32_t larger_int(int32_t one, int32_t other) { return one > other ? one : other; }
__device__ __forceinline__ int32_t joined_sum(int32_t value) { return value; }
__device__ __forceinline__ int32_t joined_most(int32_t value) { return value; }
__device__ __forceinline__ int32_t shifted_bits(float value, uint32_t by)
{
    return static_cast<int32_t>(__float_as_uint(value) << by);
}
__device__ __forceinline__ float as_floats(int32_t value) { return static_cast<float>(value); }
__device__ __forceinline__ int32_t as_ints(float value) { return static_cast<int32_t>(value); }
__device__ __forceinline__ float value_at(const float* of, int32_t place) { return of[place]; }
__device__ __forceinline__ void place_of_first_step(int32_t& place) { place = 0; }
__device__ __forceinline__ bool any_ring(bool mask) { return mask; }
__device__ __forceinline__ float kept_where(bool mask, float value) { return mask ? value : 0.f; }

#if !HLT_ON_GPU

// Eight rings, one hit a step.

#define HLT_LANES inline __attribute__((always_inline))

HLT_LANES void load_step(float8& value, const float* of, uint32_t step) { value = float8{} + of[step]; }
HLT_LANES void load_step(int8x32& value, const int32_t* of, uint32_t step) { value = int8x32{} + of[step]; }
HLT_LANES int8x32 at_least(const float8& one, const float8& other) { return one >= other; }
HLT_LANES int8x32 at_most(const float8& one, const float8& other) { return one <= other; }
HLT_LANES int8x32 and_at_most(const int8x32& mask, const float8& one, const float8& other)
{
    return mask & (one <= other);
}
HLT_LANES int8x32 differs(const int8x32& one, const int8x32& other) { return one != other; }
HLT_LANES void add_where(const int8x32& mask, int8x32& sum, const int8x32& value) { sum += mask & value; }
HLT_LANES int8x32 kept_where(const int8x32& mask, const int8x32& value) { return mask & value; }
HLT_LANES int8x32 larger_int(const int8x32& one, const int8x32& other)
{
#if defined(__AVX2__)
    return (int8x32)_mm256_max_epi32((__m256i)one, (__m256i)other);
#else
    return one > other ? one : other;
#endif
}
HLT_LANES int8x32 joined_sum(const int8x32& value) { return value; }
HLT_LANES int8x32 joined_most(const int8x32& value) { return value; }
HLT_LANES int8x32 shifted_bits(const float8& value, uint32_t by) { return (int8x32)((uint8x32)value << by); }
HLT_LANES float8 as_floats(const int8x32& value) { return __builtin_convertvector(value, float8); }
HLT_LANES int8x32 as_ints(const float8& value) { return __builtin_convertvector(value, int8x32); }
HLT_LANES float8 value_at(const float* of, const int8x32& place) { return values_at(of, (uint8x32)place); }
HLT_LANES void place_of_first_step(int8x32& place) { place = int8x32{}; }
HLT_LANES uint32_t bits_of_step(const int8x32& mask) { return bits_of(mask); }
HLT_LANES bool any_ring(const int8x32& mask) { return bits_of(mask) != 0u; }
HLT_LANES float8 kept_where(const int8x32& mask, const float8& value) { return mask ? value : float8{}; }

#if defined(HLT_AVX512)

// Eight rings, two hits a step.

HLT_LANES void load_step(float_wide& value, const float* of, uint32_t step)
{
    double pair;
    std::memcpy(&pair, of + 2u * step, sizeof pair);
    value = (float_wide)_mm512_set1_pd(pair);
}
HLT_LANES void load_step(int_wide& value, const int32_t* of, uint32_t step)
{
    int64_t pair;
    std::memcpy(&pair, of + 2u * step, sizeof pair);
    value = (int_wide)_mm512_set1_epi64(pair);
}
HLT_LANES __mmask16 at_least(const float_wide& one, const float_wide& other)
{
    return _mm512_cmp_ps_mask((__m512)one, (__m512)other, _CMP_GE_OQ);
}
HLT_LANES __mmask16 at_most(const float_wide& one, const float_wide& other)
{
    return _mm512_cmp_ps_mask((__m512)one, (__m512)other, _CMP_LE_OQ);
}
HLT_LANES __mmask16 and_at_most(__mmask16 mask, const float_wide& one, const float_wide& other)
{
    return _mm512_mask_cmp_ps_mask(mask, (__m512)one, (__m512)other, _CMP_LE_OQ);
}
HLT_LANES __mmask16 differs(const int_wide& one, const int_wide& other)
{
    return _mm512_cmpneq_epi32_mask((__m512i)one, (__m512i)other);
}
HLT_LANES void add_where(__mmask16 mask, int_wide& sum, const int_wide& value)
{
    sum = (int_wide)_mm512_mask_add_epi32((__m512i)sum, mask, (__m512i)sum, (__m512i)value);
}
HLT_LANES int_wide kept_where(__mmask16 mask, const int_wide& value)
{
    return (int_wide)_mm512_maskz_mov_epi32(mask, (__m512i)value);
}
HLT_LANES int_wide larger_int(const int_wide& one, const int_wide& other)
{
    return (int_wide)_mm512_max_epi32((__m512i)one, (__m512i)other);
}
/// The values of the other lane of each ring.
HLT_LANES int_wide of_partner(const int_wide& value)
{
    return (int_wide)_mm512_shuffle_epi32((__m512i)value, static_cast<_MM_PERM_ENUM>(0xb1));
}
HLT_LANES int_wide joined_sum(const int_wide& value) { return value + of_partner(value); }
HLT_LANES int_wide joined_most(const int_wide& value) { return larger_int(value, of_partner(value)); }
HLT_LANES int_wide shifted_bits(const float_wide& value, uint32_t by) { return (int_wide)((uint_wide)value << by); }
HLT_LANES float_wide as_floats(const int_wide& value) { return __builtin_convertvector(value, float_wide); }
HLT_LANES int_wide as_ints(const float_wide& value) { return __builtin_convertvector(value, int_wide); }
HLT_LANES float_wide value_at(const float* of, const int_wide& place)
{
    static_assert(rich_max_hits == 64u);
    const __m512i index = (__m512i)place;
    const __m512 low = _mm512_permutex2var_ps(_mm512_loadu_ps(of), index, _mm512_loadu_ps(of + 16));
    const __m512 high = _mm512_permutex2var_ps(_mm512_loadu_ps(of + 32), index, _mm512_loadu_ps(of + 48));
    return (float_wide)_mm512_mask_mov_ps(low, _mm512_test_epi32_mask(index, _mm512_set1_epi32(32)), high);
}
HLT_LANES void place_of_first_step(int_wide& place)
{
    place = int_wide{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
}
HLT_LANES uint32_t bits_of_step(__mmask16 mask) { return mask; }
HLT_LANES bool any_ring(__mmask16 mask) { return mask != 0u; }
HLT_LANES float_wide kept_where(__mmask16 mask, const float_wide& value)
{
    return (float_wide)_mm512_maskz_mov_ps(mask, (__m512)value);
}

#endif
#undef HLT_LANES
#endif

}  // namespace hlt
