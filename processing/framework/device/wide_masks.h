// Masks of wide lanes, and masked operations: bits in a mask register with AVX-512, lanes of all bits or none with
// AVX2; not available otherwise. Compilers do not keep results of vector comparisons in mask registers.
#pragma once

#include "framework/device/wide_lanes.h"

#if defined(__AVX2__)

namespace hlt {

#if defined(HLT_AVX512)

/// A subset of the wide lanes.
class wide_mask {
  public:
    static wide_mask of_bits(uint32_t bits) { return wide_mask(static_cast<__mmask16>(bits)); }
    static wide_mask of_first(uint32_t n) { return of_bits(first_bits(n)); }
    uint32_t bits() const { return bits_; }

    friend wide_mask operator&(wide_mask a, wide_mask b) { return of_bits(a.bits() & b.bits()); }
    friend wide_mask operator|(wide_mask a, wide_mask b) { return of_bits(a.bits() | b.bits()); }
    friend wide_mask operator~(wide_mask a) { return of_bits(~a.bits()); }

    static wide_mask equal(const uint_wide& a, const uint_wide& b)
    {
        return wide_mask(_mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b));
    }
    static wide_mask less(const int_wide& a, const int_wide& b)
    {
        return wide_mask(_mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b));
    }
    static wide_mask less(const float_wide& a, const float_wide& b)
    {
        return wide_mask(_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ));
    }

    /// The lanes of `yes` if the mask is set, else those of `no`.
    template <typename Lanes>
    Lanes choose(const Lanes& yes, const Lanes& no) const
    {
        return (Lanes)_mm512_mask_blend_epi32(bits_, (__m512i)no, (__m512i)yes);
    }

    /// The words at some places for lanes in the mask; other lanes read no memory and have any values.
    template <typename Word>
    uint_wide words_at(const Word* words, const uint_wide& place) const
    {
        static_assert(sizeof(Word) == 4);
        return (uint_wide)_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), bits_, (__m512i)place, words, 4);
    }

  private:
    explicit wide_mask(__mmask16 bits) : bits_(bits) {}

    __mmask16 bits_;
};

#else

class wide_mask {
  public:
    static wide_mask of_bits(uint32_t bits)
    {
        const uint_wide of_lane = uint_wide{1, 2, 4, 8, 16, 32, 64, 128};
        return wide_mask((bits & of_lane) == of_lane);
    }
    static wide_mask of_first(uint32_t n) { return wide_mask((int_wide)wide_numbers < static_cast<int32_t>(n)); }
    uint32_t bits() const { return bits_of(lanes_); }

    friend wide_mask operator&(wide_mask a, wide_mask b) { return wide_mask(a.lanes_ & b.lanes_); }
    friend wide_mask operator|(wide_mask a, wide_mask b) { return wide_mask(a.lanes_ | b.lanes_); }
    friend wide_mask operator~(wide_mask a) { return wide_mask(~a.lanes_); }

    static wide_mask equal(const uint_wide& a, const uint_wide& b) { return wide_mask(a == b); }
    static wide_mask less(const int_wide& a, const int_wide& b) { return wide_mask(a < b); }
    static wide_mask less(const float_wide& a, const float_wide& b) { return wide_mask(a < b); }

    template <typename Lanes>
    Lanes choose(const Lanes& yes, const Lanes& no) const
    {
        return lanes_ ? yes : no;
    }

    template <typename Word>
    uint_wide words_at(const Word* words, const uint_wide& place) const
    {
        static_assert(sizeof(Word) == 4);
        return (uint_wide)_mm256_mask_i32gather_epi32(_mm256_setzero_si256(), reinterpret_cast<const int*>(words),
                                                      (__m256i)place, (__m256i)lanes_, 4);
    }

  private:
    explicit wide_mask(const int_wide& lanes) : lanes_(lanes) {}

    int_wide lanes_;
};

#endif

// A column of an event has eight more places than rows. So eight lanes may read and write beyond the last row; sixteen
// lanes must not.

/// The first n words of a column; the other lanes have any values.
inline __attribute__((always_inline)) uint_wide load_first_wide(const uint32_t* from, uint32_t n)
{
#if defined(HLT_AVX512)
    return (uint_wide)_mm512_maskz_loadu_epi32(static_cast<__mmask16>(first_bits(n)), from);
#else
    static_cast<void>(n);
    uint_wide words;
    load_wide(words, from);
    return words;
#endif
}

/// The same for a column of 16 bits.
inline __attribute__((always_inline)) uint_wide load_first_wide(const uint16_t* from, uint32_t n)
{
#if defined(HLT_AVX512)
    return (uint_wide)_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(first_bits(n)), from));
#else
    static_cast<void>(n);
    uint8x16 words;
    load8(words, from);
    return widened(words);
#endif
}

/// Store the first n lanes.
template <typename Number>
inline __attribute__((always_inline)) void store_first_wide(Number* to, const uint_wide& words, uint32_t n)
{
#if defined(HLT_AVX512)
    _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(first_bits(n)), (__m512i)words);
#else
    static_cast<void>(n);
    store_wide(to, words);
#endif
}

/// The lanes whose bits are set, first ones first.
inline __attribute__((always_inline)) uint_wide packed_wide(const uint_wide& words, uint32_t bits)
{
    uint_wide packed;
    store_packed_wide(&packed, words, bits);
    return packed;
}

/// Every second word of two vectors as one column, from word `first`, 0 or 1.
template <uint32_t first>
inline __attribute__((always_inline)) uint_wide every_second(const uint_wide& a, const uint_wide& b)
{
    constexpr int f = first;
#if defined(HLT_AVX512)
    return __builtin_shufflevector(a, b, f, f + 2, f + 4, f + 6, f + 8, f + 10, f + 12, f + 14, f + 16, f + 18, f + 20,
                                   f + 22, f + 24, f + 26, f + 28, f + 30);
#else
    return __builtin_shufflevector(a, b, f, f + 2, f + 4, f + 6, f + 8, f + 10, f + 12, f + 14);
#endif
}

/// Interleaved words of two vectors, from the first or the second half of the lanes.
template <bool second_half>
inline __attribute__((always_inline)) uint_wide in_turn(const uint_wide& a, const uint_wide& b)
{
    constexpr int n = n_wide, f = second_half ? n / 2 : 0;
#if defined(HLT_AVX512)
    return __builtin_shufflevector(a, b, f, f + n, f + 1, f + n + 1, f + 2, f + n + 2, f + 3, f + n + 3, f + 4,
                                   f + n + 4, f + 5, f + n + 5, f + 6, f + n + 6, f + 7, f + n + 7);
#else
    return __builtin_shufflevector(a, b, f, f + n, f + 1, f + n + 1, f + 2, f + n + 2, f + 3, f + n + 3);
#endif
}

}  // namespace hlt

#endif
