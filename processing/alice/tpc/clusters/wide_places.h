// Clusters in the lanes of a vector: the functions of row_grid.cuh, and reads of several places at once.
#pragma once

#include "alice/tpc/clusters/row_grid.cuh"
#include "framework/device/wide_lanes.h"

namespace hlt {

/// The words at some places, in units of `scale` bytes. All lanes read.
template <int scale, typename Word>
inline __attribute__((always_inline)) uint_wide words_of(const Word* words, const uint_wide& place)
{
#if defined(HLT_AVX512)
    return (uint_wide)_mm512_i32gather_epi32((__m512i)place, words, scale);
#elif defined(__AVX2__)
    return (uint_wide)_mm256_i32gather_epi32(reinterpret_cast<const int*>(words), (__m256i)place, scale);
#else
    uint_wide found;
    for (uint32_t l = 0; l < n_wide; ++l) {
        uint32_t word;
        std::memcpy(&word, reinterpret_cast<const char*>(words) + std::size_t{place[l]} * scale, sizeof word);
        found[l] = word;
    }
    return found;
#endif
}

inline __attribute__((always_inline)) float_wide floats_of(const float* numbers, const uint_wide& place)
{
    return (float_wide)words_of<4>(numbers, place);
}

/// The number at `place` in the lower half, the one behind it in the upper half.
inline __attribute__((always_inline)) uint_wide pairs_of(const uint16_t* numbers, const uint_wide& place)
{
    return words_of<2>(numbers, place);
}

inline __attribute__((always_inline)) float_wide wide_float(const uint_wide& lanes)
{
    return __builtin_convertvector((int_wide)lanes, float_wide);
}

inline __attribute__((always_inline)) uint_wide truncated(const float_wide& lanes)
{
    return (uint_wide) __builtin_convertvector(lanes, int_wide);
}

inline __attribute__((always_inline)) float_wide y_of(const uint_wide& place)
{
    return (wide_float(place & 0xFFFFu) - static_cast<float>(tpc_y_offset)) * tpc_y_step;
}

inline __attribute__((always_inline)) float_wide z_of(const uint_wide& place)
{
    return wide_float(place >> 16) * tpc_z_step + tpc_z_start;
}

inline __attribute__((always_inline)) float_wide y_units(const float_wide& y)
{
    return y / tpc_y_step + static_cast<float>(tpc_y_offset);
}

inline __attribute__((always_inline)) float_wide z_units(const float_wide& z) { return (z - tpc_z_start) / tpc_z_step; }

inline __attribute__((always_inline)) float_wide magnitude(const float_wide& lanes)
{
    return (float_wide)((uint_wide)lanes & 0x7FFFFFFFu);
}

inline __attribute__((always_inline)) uint_wide min_lanes(const uint_wide& a, uint32_t b)
{
    const uint_wide all = uint_wide{} + b;
    return a < all ? a : all;
}

#if defined(HLT_AVX512)
inline __attribute__((always_inline)) uint32_t lowest_lane(const uint_wide& lanes)
{
    uint8x32 low, high;
    std::memcpy(&low, &lanes, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&lanes) + sizeof low, sizeof high);
    return lowest_lane(low < high ? low : high);
}
#endif

inline __attribute__((always_inline)) uint32_t highest_lane(const uint_wide& lanes) { return ~lowest_lane(~lanes); }

}  // namespace hlt
