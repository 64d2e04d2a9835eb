// Sixteen lanes for CPU forms of kernels with AVX-512, else eight: the operations of vector8.cuh and lanes.cuh for
// `n_wide` lanes.
#pragma once

#include "framework/device/lanes.cuh"

namespace hlt {

#if defined(HLT_AVX512)

constexpr uint32_t n_wide = 16;
using float_wide = float __attribute__((vector_size(64)));
using int_wide = int32_t __attribute__((vector_size(64)));
using uint_wide = uint32_t __attribute__((vector_size(64)));
constexpr uint_wide wide_numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/// Codes of vector comparisons (Intel, "Intel 64 and IA-32 Architectures Software Developer's Manual", CMPPS); none is
/// true for a NaN.
enum class wide_comparison : int { less = 0x11, at_most = 0x12, at_least = 0x1d };

/// Bit l is set if lane l of a comparison is true.
template <wide_comparison comparison>
inline __attribute__((always_inline)) uint32_t bits_where(const float_wide& one, const float_wide& other)
{
    return static_cast<uint16_t>(
        __builtin_ia32_cmpps512_mask(one, other, static_cast<int>(comparison), static_cast<uint16_t>(0xffffu), 4));
}

template <wide_comparison comparison>
inline __attribute__((always_inline)) uint32_t bits_where(const float8& one, const float8& other)
{
    return static_cast<uint8_t>(
        __builtin_ia32_cmpps256_mask(one, other, static_cast<int>(comparison), static_cast<uint8_t>(0xffu)));
}

inline __attribute__((always_inline)) uint32_t bits_of(const int_wide& comparison)
{
    return static_cast<uint16_t>(__builtin_ia32_cvtd2mask512(comparison));
}

/// Store the lanes whose bits are set, first ones first; the rest of the vector gets any values.
template <typename Number, typename Vector>
inline __attribute__((always_inline)) void store_packed_wide(Number* to, const Vector& vector, uint32_t bits)
{
    int_wide lanes;
    static_assert(sizeof vector == sizeof lanes);
    std::memcpy(&lanes, &vector, sizeof lanes);
    lanes = __builtin_ia32_compresssi512_mask(lanes, lanes, static_cast<uint16_t>(bits));
    std::memcpy(to, &lanes, sizeof lanes);
}

/// Number the lanes whose bits are set from `first` on; the others get any values.
inline __attribute__((always_inline)) uint_wide numbered_wide(uint32_t bits, uint32_t first)
{
    return (uint_wide)_mm512_maskz_expand_epi32(static_cast<__mmask16>(bits), (__m512i)(wide_numbers + first));
}

/// Entries of a table, selected by the lanes of `lane`.
inline __attribute__((always_inline)) float_wide picked(const float_wide& table, const uint_wide& lane)
{
    return (float_wide)_mm512_permutexvar_ps((__m512i)lane, (__m512)table);
}

/// Lanes shifted up by one; the first lane is the last of `before`.
template <typename Vector>
inline __attribute__((always_inline)) Vector moved_in(const Vector& before, const Vector& lanes)
{
    return __builtin_shufflevector(before, lanes, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
}

/// Words at byte offsets.
inline __attribute__((always_inline)) uint_wide words_at(const uint32_t* words, const uint_wide& byte)
{
    int_wide index;
    std::memcpy(&index, &byte, sizeof index);
    index = __builtin_ia32_gathersiv16si(int_wide{}, words, index, static_cast<uint16_t>(0xffffu), 1);
    uint_wide found;
    std::memcpy(&found, &index, sizeof found);
    return found;
}

/// The lowest byte of each lane.
inline __attribute__((always_inline)) void store_bytes_wide(uint8_t* to, const uint_wide& lanes)
{
    using bytes = uint8_t __attribute__((vector_size(n_wide)));
    const bytes packed = __builtin_convertvector(lanes, bytes);
    std::memcpy(to, &packed, sizeof packed);
}

#else

constexpr uint32_t n_wide = 8;
using float_wide = float8;
using int_wide = int8x32;
using uint_wide = uint8x32;
constexpr uint_wide wide_numbers = lane_numbers;

enum class wide_comparison { less, at_most, at_least };

template <wide_comparison comparison>
inline __attribute__((always_inline)) uint32_t bits_where(const float_wide& one, const float_wide& other)
{
    if constexpr (comparison == wide_comparison::less)
        return bits_of(one < other);
    else if constexpr (comparison == wide_comparison::at_most)
        return bits_of(one <= other);
    else
        return bits_of(one >= other);
}

template <typename Number, typename Vector>
inline __attribute__((always_inline)) void store_packed_wide(Number* to, const Vector& vector, uint32_t bits)
{
    store_packed(to, vector, bits);
}

/// For every subset of eight places and every place the number of members before it.
struct numbers_of_bits {
    uint8_t numbers[256][8];

    constexpr numbers_of_bits() : numbers{}
    {
        for (uint32_t bits = 0; bits < 256u; ++bits)
            for (uint8_t place = 0, n = 0; place < 8u; ++place) {
                numbers[bits][place] = n;
                if ((bits >> place & 1u) != 0u) ++n;
            }
    }
};
inline constexpr numbers_of_bits numbers_of_eight;

inline __attribute__((always_inline)) uint_wide numbered_wide(uint32_t bits, uint32_t first)
{
    uint_wide numbers;
    load_bytes8(numbers, numbers_of_eight.numbers[bits]);
    return numbers + first;
}

inline __attribute__((always_inline)) float_wide picked(const float_wide& table, const uint_wide& lane)
{
#if defined(__AVX2__)
    return __builtin_ia32_permvarsf256(table, (int_wide)lane);
#else
    float_wide found;
    for (uint32_t l = 0; l < n_wide; ++l) found[l] = table[lane[l] % n_wide];
    return found;
#endif
}

template <typename Vector>
inline __attribute__((always_inline)) Vector moved_in(const Vector& before, const Vector& lanes)
{
    return __builtin_shufflevector(before, lanes, 7, 8, 9, 10, 11, 12, 13, 14);
}

inline __attribute__((always_inline)) uint_wide words_at(const uint32_t* words, const uint_wide& byte)
{
    return bits_from(words, byte * 8u);
}

inline __attribute__((always_inline)) void store_bytes_wide(uint8_t* to, const uint_wide& lanes)
{
    store_bytes8(to, lanes);
}

#endif

constexpr uint32_t all_wide = (1u << n_wide) - 1u;

template <typename Number, typename Vector>
inline __attribute__((always_inline)) void load_wide(Vector& vector, const Number* from)
{
    static_assert(sizeof vector == sizeof(float_wide));
    std::memcpy(&vector, from, sizeof vector);
}

/// Load the lanes whose bits are set, which are the first ones; at most eight of the others are read, with any values.
template <typename Number, typename Vector>
inline __attribute__((always_inline)) void load_wide_where(Vector& vector, const Number* from,
                                                           [[maybe_unused]] uint32_t bits)
{
    static_assert(sizeof vector == sizeof(float_wide));
#if defined(HLT_AVX512)
    const int_wide loaded =
        __builtin_ia32_loaddqusi512_mask(reinterpret_cast<const int*>(from), int_wide{}, static_cast<uint16_t>(bits));
    std::memcpy(&vector, &loaded, sizeof vector);
#else
    std::memcpy(&vector, from, sizeof vector);
#endif
}

/// Load at least n words. Words after them are loaded if they lie before `end`, else they have any values.
inline __attribute__((always_inline)) void load_wide_before(uint_wide& words, const uint8_t* from, uint32_t n,
                                                            const uint8_t* end)
{
    words = uint_wide{};
    if (static_cast<std::size_t>(end - from) >= sizeof words)
        std::memcpy(&words, from, sizeof words);
    else
        std::memcpy(&words, from, (n < n_wide ? n : n_wide) * sizeof(uint32_t));
}

template <typename Number, typename Vector>
inline __attribute__((always_inline)) void store_wide(Number* to, const Vector& vector)
{
    static_assert(sizeof vector == sizeof(float_wide));
    std::memcpy(to, &vector, sizeof vector);
}

/// Mask of the first n lanes.
inline __attribute__((always_inline)) uint32_t first_bits(uint32_t n) { return n < n_wide ? (1u << n) - 1u : all_wide; }

inline __attribute__((always_inline)) uint32_t first_of_eight(uint32_t n) { return n < 8u ? (1u << n) - 1u : 0xffu; }

/// Index of the lowest set bit.
inline __attribute__((always_inline)) uint32_t lowest_bit(uint32_t bits)
{
    return static_cast<uint32_t>(__builtin_ctz(bits));
}

}  // namespace hlt
