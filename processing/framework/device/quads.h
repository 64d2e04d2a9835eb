// Wide lanes as quads of four: 128 bits each, within which both AVX2 and AVX-512 shuffle.
#pragma once

#include "framework/device/wide_lanes.h"

#if defined(__AVX2__)

namespace hlt {

/// Lane k of each quad in all lanes of the quad.
template <int k>
inline __attribute__((always_inline)) float_wide in_quads(const float_wide& lanes)
{
#if defined(HLT_AVX512)
    return (float_wide)_mm512_permute_ps((__m512)lanes, k * 0x55);
#else
    return (float_wide)_mm256_permute_ps((__m256)lanes, k * 0x55);
#endif
}

/// The quads of a column at places[0], places[4] and so on; `bits`: mask of the bits of these words that hold the
/// place.
inline __attribute__((always_inline)) float_wide quads_at(const float* column, const uint32_t* places, uint32_t bits)
{
    const auto quad = [&](uint32_t q) { return _mm_loadu_ps(column + (places[4u * q] & bits)); };
    const __m256 two = _mm256_insertf128_ps(_mm256_castps128_ps256(quad(0)), quad(1), 1);
#if defined(HLT_AVX512)
    const __m256 others = _mm256_insertf128_ps(_mm256_castps128_ps256(quad(2)), quad(3), 1);
    return (float_wide)_mm512_insertf32x8(_mm512_castps256_ps512(two), others, 1);
#else
    return (float_wide)two;
#endif
}

/// Lane k of each quad is the minimum of the lanes of that quad in vector k.
inline __attribute__((always_inline)) uint_wide least_of_quads(const uint_wide& v0, const uint_wide& v1,
                                                               const uint_wide& v2, const uint_wide& v3)
{
#if defined(HLT_AVX512)
    const auto least_in_turn = [](const uint_wide& a, const uint_wide& b) {
        const __m512i one = _mm512_unpacklo_epi32((__m512i)a, (__m512i)b);
        return _mm512_min_epu32(one, _mm512_unpackhi_epi32((__m512i)a, (__m512i)b));
    };
    const __m512i a = least_in_turn(v0, v1), b = least_in_turn(v2, v3);
    return (uint_wide)_mm512_min_epu32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
#else
    const auto least_in_turn = [](const uint_wide& a, const uint_wide& b) {
        const __m256i one = _mm256_unpacklo_epi32((__m256i)a, (__m256i)b);
        return _mm256_min_epu32(one, _mm256_unpackhi_epi32((__m256i)a, (__m256i)b));
    };
    const __m256i a = least_in_turn(v0, v1), b = least_in_turn(v2, v3);
    return (uint_wide)_mm256_min_epu32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
#endif
}

}  // namespace hlt

#endif
