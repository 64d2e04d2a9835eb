// PTX instructions on integers and on bits of words, computed on unsigned types, where overflow wraps.
#pragma once

#include <cstdint>
#include <type_traits>

#include "warp.h"

namespace ptx {

template <typename T>
T add(T a, T b)
{
    return static_cast<T>(a + b);
}
template <typename T>
T sub(T a, T b)
{
    return static_cast<T>(a - b);
}
template <typename T>
T mul_lo(T a, T b)
{
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <typename T>
T mad_lo(T a, T b, T c)
{
    return add(mul_lo(a, b), c);
}
template <typename Wide, typename T>
Wide mul_wide(T a, T b)
{
    return static_cast<Wide>(a) * static_cast<Wide>(b);
}
template <typename Wide, typename T>
Wide mad_wide(T a, T b, Wide c)
{
    return static_cast<Wide>(static_cast<uint64_t>(mul_wide<Wide>(a, b)) + static_cast<uint64_t>(c));
}
template <typename Wide, typename T>
T mul_hi(T a, T b)
{
    return static_cast<T>(mul_wide<Wide>(a, b) >> (8 * sizeof(T)));
}
template <typename T>
T div(T a, T b)
{
    if (b == 0) throw Fault("division by zero");
    if constexpr (std::is_signed_v<T>)
        if (b == -1) return static_cast<T>(-static_cast<int64_t>(a));
    return static_cast<T>(a / b);
}
template <typename T>
T rem(T a, T b)
{
    if (b == 0) throw Fault("remainder of a division by zero");
    if constexpr (std::is_signed_v<T>)
        if (b == -1) return 0;
    return static_cast<T>(a % b);
}
template <typename T>
T min_int(T a, T b)
{
    return b < a ? b : a;
}
template <typename T>
T max_int(T a, T b)
{
    return a < b ? b : a;
}
template <typename T>
T neg_int(T a)
{
    return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
}
template <typename T>
T abs_int(T a)
{
    return a < 0 ? neg_int(a) : a;
}

// ---- bits

template <typename T>
T bit_and(T a, T b)
{
    return a & b;
}
template <typename T>
T bit_or(T a, T b)
{
    return a | b;
}
template <typename T>
T bit_xor(T a, T b)
{
    return a ^ b;
}
template <typename T>
T bit_not(T a)
{
    return static_cast<T>(~a);
}
inline bool bit_not_pred(bool a) { return !a; }
inline bool xor_pred(bool a, bool b) { return a != b; }

/// Shifts by the width or more give 0, or the sign.
template <typename T>
T shl(T a, uint32_t n)
{
    return n >= 8 * sizeof(T) ? 0 : static_cast<T>(a << n);
}
template <typename T>
T shr(T a, uint32_t n)
{
    constexpr uint32_t last = 8 * sizeof(T) - 1;
    if (n > last) return std::is_signed_v<T> ? static_cast<T>(a >> last) : 0;
    return static_cast<T>(a >> n);
}
inline uint32_t funnel_left(uint32_t low, uint32_t high, uint32_t n)
{
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) << n >> 32);
}
inline uint32_t funnel_right(uint32_t low, uint32_t high, uint32_t n)
{
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> n);
}
inline uint32_t shf_l_wrap(uint32_t low, uint32_t high, uint32_t n) { return funnel_left(low, high, n & 31u); }
inline uint32_t shf_r_wrap(uint32_t low, uint32_t high, uint32_t n) { return funnel_right(low, high, n & 31u); }
inline uint32_t shf_l_clamp(uint32_t low, uint32_t high, uint32_t n)
{
    return funnel_left(low, high, n < 32u ? n : 32u);
}
inline uint32_t shf_r_clamp(uint32_t low, uint32_t high, uint32_t n)
{
    return funnel_right(low, high, n < 32u ? n : 32u);
}

template <typename T>
uint32_t popc(T a)
{
    return static_cast<uint32_t>(__builtin_popcountll(a));
}
template <typename T>
uint32_t clz(T a)
{
    constexpr uint32_t bits = 8 * sizeof(T);
    return a == 0 ? bits : static_cast<uint32_t>(__builtin_clzll(a)) - (64u - bits);
}
inline uint32_t brev(uint32_t a)
{
    uint32_t reversed = 0;
    for (uint32_t bit = 0; bit < 32u; ++bit) reversed |= (a >> bit & 1u) << (31u - bit);
    return reversed;
}
inline uint32_t bfind(uint32_t a) { return a == 0 ? 0xffffffffu : 31u - clz(a); }
inline uint32_t bfind_shiftamt(uint32_t a) { return a == 0 ? 0xffffffffu : clz(a); }
template <typename T>
T bfi(T a, T b, uint32_t position, uint32_t length)
{
    constexpr uint32_t bits = 8 * sizeof(T);
    position &= 0xffu;
    length &= 0xffu;
    const T ones = length >= bits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1u);
    const T field = shl(ones, position);
    return (b & ~field) | (shl(a, position) & field);
}
inline uint32_t bfe_u32(uint32_t a, uint32_t position, uint32_t length)
{
    length &= 0xffu;
    const uint32_t ones = length >= 32u ? 0xffffffffu : (1u << length) - 1u;
    return shr(a, position & 0xffu) & ones;
}
/// The sign is the last bit of the field, or the sign of the word if the field exceeds it.
inline int32_t bfe_s32(int32_t a, uint32_t position, uint32_t length)
{
    position &= 0xffu;
    length &= 0xffu;
    if (length == 0u) return 0;
    const uint32_t last = position + length - 1u < 31u ? position + length - 1u : 31u;
    if (position > last) return a < 0 ? -1 : 0;
    const uint32_t to_top = 31u - last;
    return static_cast<int32_t>(static_cast<uint32_t>(a) << to_top) >> (to_top + position);
}
inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector)
{
    const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
    uint32_t result = 0;
    for (uint32_t i = 0; i < 4u; ++i) {
        const uint32_t choice = selector >> (4u * i);
        uint32_t byte = static_cast<uint32_t>(bytes >> (8u * (choice & 7u))) & 0xffu;
        if (choice & 8u) byte = byte & 0x80u ? 0xffu : 0u;
        result |= byte << (8u * i);
    }
    return result;
}

}  // namespace ptx
