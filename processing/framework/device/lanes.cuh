// Places that a thread processes in one step: the lanes of a vector register on the CPU; one on a GPU, whose threads
// are the lanes. Code between loads and stores is the same: arithmetic, comparisons, `condition ? a : b`.
#pragma once

#include "framework/device/vector8.cuh"

namespace hlt {

/// Truncates numbers that are not negative.
__device__ uint32_t truncated(float number) { return static_cast<uint32_t>(static_cast<int32_t>(number)); }

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

constexpr uint32_t n_lanes = 1;
using float_lanes = float;
using uint_lanes = uint32_t;

template <typename Lanes>
__device__ void load_lanes(Lanes& lanes, const Lanes* from)
{
    lanes = *from;
}
template <typename Lanes>
__device__ void store_lanes(Lanes* to, Lanes lanes)
{
    *to = lanes;
}

/// Bit l is set if lane l of a comparison is true.
__device__ uint32_t lanes_where(bool comparison) { return comparison ? 1u : 0u; }

__device__ float as_float(uint32_t lanes) { return static_cast<float>(lanes); }

/// True in the first n lanes.
__device__ bool first_lanes(uint32_t n) { return n != 0u; }

/// 1 if a comparison is true, else 0.
__device__ uint32_t ones_where(bool comparison) { return comparison ? 1u : 0u; }

/// Store the lanes whose bits are set, first ones first; the places of the others get any values.
template <typename Lanes>
__device__ void store_packed(Lanes* to, Lanes lanes, uint32_t bits)
{
    if (bits != 0u) *to = lanes;
}

/// The values at some places of a column.
template <typename Column>
__device__ float values_at(const Column& column, uint32_t place)
{
    return column[place];
}

/// At least 25 bits of a column of words from a given bit; they may span two words.
template <typename Column>
__device__ uint32_t bits_from(const Column& words, uint32_t bit)
{
    const uint32_t word = bit / 32u;
    return static_cast<uint32_t>((static_cast<uint64_t>(words[word + 1u]) << 32u | words[word]) >> bit % 32u);
}

#else

// The ABI for returned vectors differs with and without AVX. All such functions are inline, so this has no effect.
#pragma GCC diagnostic ignored "-Wpsabi"

constexpr uint32_t n_lanes = 8;
using float_lanes = float8;
using uint_lanes = uint8x32;

template <typename Lanes, typename Number>
inline __attribute__((always_inline)) void load_lanes(Lanes& lanes, const Number* from)
{
    load8(lanes, from);
}
template <typename Number, typename Lanes>
inline __attribute__((always_inline)) void store_lanes(Number* to, const Lanes& lanes)
{
    std::memcpy(to, &lanes, sizeof lanes);
}

/// Bit l is set if lane l of a comparison is true.
inline __attribute__((always_inline)) uint32_t lanes_where(const int8x32& comparison) { return bits_of(comparison); }

/// Truncates numbers that are not negative.
inline __attribute__((always_inline)) uint8x32 truncated(const float8& lanes)
{
    return __builtin_convertvector(__builtin_convertvector(lanes, int8x32), uint8x32);
}

inline __attribute__((always_inline)) float8 as_float(const uint8x32& lanes)
{
    return __builtin_convertvector(__builtin_convertvector(lanes, int8x32), float8);
}

constexpr uint8x32 lane_numbers{0, 1, 2, 3, 4, 5, 6, 7};

/// True in the first n lanes.
inline __attribute__((always_inline)) int8x32 first_lanes(uint32_t n) { return lane_numbers < n; }

/// 1 if a comparison is true, else 0.
inline __attribute__((always_inline)) uint8x32 ones_where(const int8x32& comparison)
{
    return __builtin_convertvector(comparison & 1, uint8x32);
}

/// The values at some places of a column.
template <typename Column>
inline __attribute__((always_inline)) float8 values_at(const Column& column, const uint8x32& place)
{
#if defined(__AVX2__)
    return (float8)_mm256_i32gather_ps(&column[0], (__m256i)place, 4);
#else
    float8 values;
    for (uint32_t l = 0; l < n_lanes; ++l) values[l] = column[place[l]];
    return values;
#endif
}

/// At least 25 bits of a column of words from a given bit; they may span two words.
template <typename Column>
inline __attribute__((always_inline)) uint8x32 bits_from(const Column& words, const uint8x32& bit)
{
    const uint8x32 byte = bit / 8u;
#if defined(__AVX2__)
    const uint8x32 found = (uint8x32)_mm256_i32gather_epi32(reinterpret_cast<const int*>(&words[0]), (__m256i)byte, 1);
#else
    uint8x32 found;
    for (uint32_t l = 0; l < n_lanes; ++l) {
        uint32_t word;
        std::memcpy(&word, reinterpret_cast<const char*>(&words[0]) + byte[l], sizeof word);
        found[l] = word;
    }
#endif
    return found >> bit % 8u;
}

#endif

/// Square root of each lane.
template <typename Lanes>
__device__ __forceinline__ Lanes square_root(const Lanes& lanes)
{
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    return sqrtf(lanes);
#else
    float roots[sizeof lanes / sizeof(float)];
    std::memcpy(roots, &lanes, sizeof lanes);
    for (float& root : roots) root = sqrtf(root);
    Lanes found;
    std::memcpy(&found, roots, sizeof found);
    return found;
#endif
}

/// One value in all lanes.
template <typename Lanes, typename Value>
__device__ Lanes in_all_lanes(Value value)
{
    return Lanes{} + value;
}

template <typename Lanes>
__device__ Lanes absolute(const Lanes& lanes)
{
    return lanes < 0.f ? -lanes : lanes;
}

}  // namespace hlt
