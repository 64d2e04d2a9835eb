// Eight lanes for the CPU, for hot loops over a few places that compilers unroll into scalar code. GCC and Clang lower
// these vectors to the available instruction set. On a GPU the threads are the lanes, so this header is empty.
#pragma once

#include "framework/device/platform.cuh"

#if !HLT_ON_GPU

// The ABI for returned vectors differs with and without AVX. All such functions are inline, so this has no effect.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace hlt {

using float8 = float __attribute__((vector_size(32)));
using int8x32 = int32_t __attribute__((vector_size(32)));  // eight lanes of 32 bits
using uint8x32 = uint32_t __attribute__((vector_size(32)));
using uint8x16 = uint16_t __attribute__((vector_size(16)));  // eight lanes of 16 bits
using int8x16 = int16_t __attribute__((vector_size(16)));
using uint4x32 = uint32_t __attribute__((vector_size(16)));

template <typename Vector>
inline __attribute__((always_inline)) void load8(Vector& vector, const void* from)
{
    std::memcpy(&vector, from, sizeof vector);
}

/// Whether the instruction set can compare eight lanes. Without AVX2, GCC compares lane by lane; CPU forms that depend
/// on comparisons then call the common kernel, which is faster. Tests define HLT_EVERY_CPU_FORM to run the forms under
/// sanitizers, which use the baseline instruction set.
#if defined(__AVX2__) || defined(HLT_EVERY_CPU_FORM)
constexpr bool compares_eight_lanes = true;
#else
constexpr bool compares_eight_lanes = false;
#endif

// Conversions between eight lanes of 32 bits and narrower ones. GCC compiles __builtin_convertvector to several
// shuffles, and for eight bytes to at least one instruction per byte.
#if defined(__AVX2__) && !defined(__clang__)
#define HLT_CONVERSIONS_BY_NAME
#endif
using eight_bytes = uint8_t __attribute__((vector_size(8)));
using sixteen_bytes = char __attribute__((vector_size(16)));

/// Eight bytes of memory in the lower half of a register.
inline __attribute__((always_inline)) sixteen_bytes load_half(const void* from)
{
    long long low;
    std::memcpy(&low, from, sizeof low);
    using two_words = long long __attribute__((vector_size(16)));
    return (sixteen_bytes)two_words{low, 0};
}

/// Lanes of 16 bits as lanes of 32.
inline __attribute__((always_inline)) uint8x32 widened(const uint8x16& lanes)
{
#if defined(HLT_CONVERSIONS_BY_NAME)
    return (uint8x32)__builtin_ia32_pmovzxwd256((int8x16)lanes);
#else
    return __builtin_convertvector(lanes, uint8x32);
#endif
}

/// Eight bytes as lanes, of 32 or 16 bits.
#if defined(HLT_CONVERSIONS_BY_NAME)
inline __attribute__((always_inline)) void load_bytes8(uint8x32& lanes, const uint8_t* from)
{
    lanes = (uint8x32)__builtin_ia32_pmovzxbd256(load_half(from));
}

inline __attribute__((always_inline)) void load_bytes8(uint8x16& lanes, const uint8_t* from)
{
    lanes = (uint8x16)__builtin_ia32_pmovzxbw128(load_half(from));
}
#else
template <typename Lanes>
inline __attribute__((always_inline)) void load_bytes8(Lanes& lanes, const uint8_t* from)
{
    eight_bytes bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    lanes = __builtin_convertvector(bytes, Lanes);
}
#endif

/// The lowest byte of each lane.
inline __attribute__((always_inline)) void store_bytes8(uint8_t* to, const uint8x32& lanes)
{
#if defined(HLT_CONVERSIONS_BY_NAME)
    using bytes = uint8_t __attribute__((vector_size(32)));
    constexpr int any = -1;
    const uint8x32 of_halves = (uint8x32)__builtin_shufflevector(
        (bytes)lanes, (bytes)lanes, 0, 4, 8, 12, any, any, any, any, any, any, any, any, any, any, any, any, 16, 20, 24,
        28, any, any, any, any, any, any, any, any, any, any, any, any);
    const uint8x32 packed = __builtin_shufflevector(of_halves, of_halves, 0, 4, any, any, any, any, any, any);
    std::memcpy(to, &packed, 8);
#else
    const eight_bytes packed = __builtin_convertvector(lanes, eight_bytes);
    std::memcpy(to, &packed, sizeof packed);
#endif
}
#undef HLT_CONVERSIONS_BY_NAME

/// The first `n` of eight lanes of 16 bits; the others are 0, and memory beyond the first `n` is not read.
inline __attribute__((always_inline)) void load_first8(uint8x16& lanes, const void* from, uint32_t n)
{
#if defined(HLT_AVX512)
#if defined(__clang__)
    using pointer = const int8x16*;
#else
    using pointer = const int16_t*;
#endif
    const uint32_t bits = (1u << (n < 8u ? n : 8u)) - 1u;
    const int8x16 loaded =
        __builtin_ia32_loaddquhi128_mask(static_cast<pointer>(from), int8x16{}, static_cast<unsigned char>(bits));
    std::memcpy(&lanes, &loaded, sizeof lanes);
#else
    lanes = uint8x16{};
    if (n >= 8u)
        std::memcpy(&lanes, from, sizeof lanes);
    else
        std::memcpy(&lanes, from, n * sizeof(uint16_t));
#endif
}

/// The lanes in reverse order.
inline __attribute__((always_inline)) uint8x16 reversed8(const uint8x16& lanes)
{
    return __builtin_shufflevector(lanes, lanes, 7, 6, 5, 4, 3, 2, 1, 0);
}

/// Minimum of the eight lanes.
inline __attribute__((always_inline)) uint32_t lowest_lane(const uint8x32& lanes)
{
    uint4x32 low, high;
    std::memcpy(&low, &lanes, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&lanes) + sizeof low, sizeof high);
    uint4x32 four = low < high ? low : high;
    uint4x32 moved = __builtin_shufflevector(four, four, 2, 3, 0, 1);
    four = four < moved ? four : moved;
    moved = __builtin_shufflevector(four, four, 1, 0, 3, 2);
    four = four < moved ? four : moved;
    return four[0];
}

/// Bit k is set if lane k of a comparison is true.
inline __attribute__((always_inline)) uint32_t bits_of(const int8x32& comparison)
{
#if defined(__AVX__)
    float8 lanes;
    std::memcpy(&lanes, &comparison, sizeof lanes);
    return static_cast<uint32_t>(__builtin_ia32_movmskps256(lanes));
#else
    const int8x32 weight{1, 2, 4, 8, 16, 32, 64, 128};
    const int8x32 weighted = comparison & weight;
    uint4x32 low, high;
    std::memcpy(&low, &weighted, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&weighted) + sizeof low, sizeof high);
    const uint4x32 four = low | high;
    return (four[0] | four[1]) | (four[2] | four[3]);
#endif
}

inline __attribute__((always_inline)) uint32_t bits_of(const int8x16& comparison)
{
#if defined(__SSE2__)
    const sixteen_bytes bytes = __builtin_ia32_packsswb128(comparison, int8x16{});
    return static_cast<uint32_t>(__builtin_ia32_pmovmskb128(bytes));
#else
    uint32_t bits = 0;
    for (uint32_t k = 0; k < 8u; ++k) bits |= comparison[k] != 0 ? 1u << k : 0u;
    return bits;
#endif
}

/// For every subset of eight places the places in it, in order.
struct places_of_bits {
    uint8_t places[256][8];

    constexpr places_of_bits() : places{}
    {
        for (uint32_t bits = 0; bits < 256u; ++bits)
            for (uint8_t place = 0, n = 0; place < 8u; ++place)
                if ((bits >> place & 1u) != 0u) places[bits][n++] = place;
    }
};
inline constexpr places_of_bits eight_places;

/// Store the lanes whose bits are set, first ones first; the rest of the 32 bytes gets any values.
template <typename Vector>
inline __attribute__((always_inline)) void store_packed(void* to, const Vector& vector, uint32_t bits)
{
    int8x32 lanes, packed;
    static_assert(sizeof vector == sizeof lanes);
    std::memcpy(&lanes, &vector, sizeof lanes);
#if defined(HLT_AVX512)
    packed = __builtin_ia32_compresssi256_mask(lanes, lanes, static_cast<unsigned char>(bits));
#else
    const uint8_t* const places = eight_places.places[bits];
#if defined(__AVX2__)
    uint8x32 wide;
    load_bytes8(wide, places);
    packed = __builtin_ia32_permvarsi256(lanes, (int8x32)wide);
#else
    for (int32_t k = 0; k < 8; ++k) packed[k] = lanes[places[k]];
#endif
#endif
    std::memcpy(to, &packed, sizeof packed);
}

/// Store the lanes of 16 bits whose bits are set, first ones first; the rest of the 16 bytes gets any values.
inline __attribute__((always_inline)) void store_packed(void* to, const uint8x16& lanes, uint32_t bits)
{
    const uint8_t* const places = eight_places.places[bits];
    uint8x16 packed;
#if defined(__SSSE3__)
    // Place k is in bytes 2 k and 2 k + 1.
    uint8x16 wide;
    load_bytes8(wide, places);
    packed = (uint8x16)__builtin_ia32_pshufb128((sixteen_bytes)lanes, (sixteen_bytes)(wide * 0x0202u + 0x0100u));
#else
    for (int32_t k = 0; k < 8; ++k) packed[k] = lanes[places[k]];
#endif
    std::memcpy(to, &packed, sizeof packed);
}

template <typename Number, typename Lanes>
inline __attribute__((always_inline)) void store_lanes(Number* to, const Lanes& lanes)
{
    std::memcpy(to, &lanes, sizeof lanes);
}

inline __attribute__((always_inline)) float8 as_float(const uint8x32& lanes)
{
    return __builtin_convertvector(__builtin_convertvector(lanes, int8x32), float8);
}

constexpr uint8x32 lane_numbers{0, 1, 2, 3, 4, 5, 6, 7};

/// True in the first n lanes.
inline __attribute__((always_inline)) int8x32 first_lanes(uint32_t n) { return lane_numbers < n; }

/// The values at some places of a column.
template <typename Column>
inline __attribute__((always_inline)) float8 values_at(const Column& column, const uint8x32& place)
{
#if defined(__AVX2__)
    return (float8)_mm256_i32gather_ps(&column[0], (__m256i)place, 4);
#else
    float8 values;
    for (uint32_t l = 0; l < 8u; ++l) values[l] = column[place[l]];
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
    for (uint32_t l = 0; l < 8u; ++l) {
        uint32_t word;
        std::memcpy(&word, reinterpret_cast<const char*>(&words[0]) + byte[l], sizeof word);
        found[l] = word;
    }
#endif
    return found >> bit % 8u;
}

}  // namespace hlt

#endif
