// Instructions that work lane by lane on registers, by their names in PTX (PTX ISA, "Instruction Set").
//
// Only what NVRTC makes of our kernels, by whole families; a name that is missing is refused when a kernel is loaded.
// So are add.f32 and mul.f32 without .rn, which ptxas may fuse, and everything with .ftz or .approx, which rounds
// otherwise than the CPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "warp.h"

namespace ptx {

using Handler = void (*)(Warp& warp, const Instruction& instruction, uint32_t mask);
using Handlers = std::unordered_map<std::string, Handler>;

/// Applies a function of plain values to the lanes.
template <auto Function>
struct Lanes;

template <typename R, typename... A, R (*Function)(A...)>
struct Lanes<Function> {
    static void run(Warp& warp, const Instruction& instruction, uint32_t mask)
    {
        apply(warp, instruction, mask, std::index_sequence_for<A...>{});
    }

  private:
    template <std::size_t... I>
    static void apply(Warp& warp, const Instruction& instruction, uint32_t mask, std::index_sequence<I...>)
    {
        uint64_t* const result = warp.slot(instruction.results[0]);
        const uint64_t* const operands[] = {warp.slot(instruction.operands[I])...};
        for_lanes(mask, [&](uint32_t lane) { result[lane] = put<R>(Function(get<A>(operands[I][lane])...)); });
    }
};

// ---- integers: computed on unsigned types, where overflow wraps

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

/// Shifts by the width and more give 0, or the sign.
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
/// The sign is that of the field's last bit, or of the word where the field leaves it.
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

// ---- floating point: a NaN that is computed is the canonical one, as on the GPU

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
/// Of a NaN and a number the number; +0 is greater than -0.
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

// ---- conversions

template <typename To, typename From>
To convert(From value)
{
    return static_cast<To>(value);
}
/// Towards zero; NaN gives 0, values out of range the nearest integer that there is.
template <typename To>
To round_to_zero(float value)
{
    if (std::isnan(value)) return 0;
    const double whole = std::trunc(static_cast<double>(value));
    if (whole <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (whole >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(whole);
}

// ---- comparisons: those that end in u are true with a NaN too

template <typename T>
bool eq(T a, T b)
{
    return a == b;
}
template <typename T>
bool lt(T a, T b)
{
    return a < b;
}
template <typename T>
bool le(T a, T b)
{
    return a <= b;
}
template <typename T>
bool gt(T a, T b)
{
    return a > b;
}
template <typename T>
bool ge(T a, T b)
{
    return a >= b;
}
template <typename T>
bool ne(T a, T b)
{
    return a != b;
}
inline bool is_unordered(float a, float b) { return std::isnan(a) || std::isnan(b); }
inline bool is_ordered(float a, float b) { return !is_unordered(a, b); }
inline bool ne_ordered(float a, float b) { return is_ordered(a, b) && a != b; }
inline bool equ(float a, float b) { return is_unordered(a, b) || a == b; }
inline bool ltu(float a, float b) { return !(a >= b); }
inline bool leu(float a, float b) { return !(a > b); }
inline bool gtu(float a, float b) { return !(a <= b); }
inline bool geu(float a, float b) { return !(a < b); }

template <typename T>
T select(T a, T b, bool first)
{
    return first ? a : b;
}
template <typename T>
T move(T a)
{
    return a;
}

/// mov with several results: the parts of a word, the lowest first. `bytes` is that of the word, `count` the parts'.
inline void unpack(Warp& warp, const Instruction& instruction, uint32_t mask)
{
    const uint32_t bits = 8u * instruction.bytes / instruction.count;
    uint64_t words[warp_size];
    std::memcpy(words, warp.slot(instruction.operands[0]), sizeof words);
    for (uint32_t i = 0; i < instruction.count; ++i) {
        if (instruction.results[i] < 0) continue;
        uint64_t* const result = warp.slot(instruction.results[i]);
        for_lanes(mask,
                  [&](uint32_t lane) { result[lane] = words[lane] >> (i * bits) & ((uint64_t{1} << bits) - 1u); });
    }
}

/// mov with several operands: the parts of a word, the lowest first.
inline void pack(Warp& warp, const Instruction& instruction, uint32_t mask)
{
    const uint32_t bits = 8u * instruction.bytes / instruction.count;
    uint64_t words[warp_size] = {};
    for (uint32_t i = 0; i < instruction.count; ++i) {
        const uint64_t* const part = warp.slot(instruction.operands[i]);
        for_lanes(mask,
                  [&](uint32_t lane) { words[lane] |= (part[lane] & ((uint64_t{1} << bits) - 1u)) << (i * bits); });
    }
    uint64_t* const result = warp.slot(instruction.results[0]);
    for_lanes(mask, [&](uint32_t lane) { result[lane] = words[lane]; });
}

// ---- names

template <typename T>
void add_bits(Handlers& handlers, const std::string& type)
{
    handlers["and." + type] = &Lanes<&bit_and<T>>::run;
    handlers["or." + type] = &Lanes<&bit_or<T>>::run;
    handlers["xor." + type] = &Lanes<&bit_xor<T>>::run;
    handlers["not." + type] = &Lanes<&bit_not<T>>::run;
    handlers["shl." + type] = &Lanes<&shl<T>>::run;
    handlers["setp.eq." + type] = &Lanes<&eq<T>>::run;
    handlers["setp.ne." + type] = &Lanes<&ne<T>>::run;
    handlers["selp." + type] = &Lanes<&select<T>>::run;
    handlers["mov." + type] = &Lanes<&move<T>>::run;
}

template <typename T>
void add_integer(Handlers& handlers, const std::string& type)
{
    using U = std::make_unsigned_t<T>;
    handlers["add." + type] = &Lanes<&add<U>>::run;
    handlers["sub." + type] = &Lanes<&sub<U>>::run;
    handlers["mul.lo." + type] = &Lanes<&mul_lo<U>>::run;
    handlers["mad.lo." + type] = &Lanes<&mad_lo<U>>::run;
    handlers["div." + type] = &Lanes<&div<T>>::run;
    handlers["rem." + type] = &Lanes<&rem<T>>::run;
    handlers["min." + type] = &Lanes<&min_int<T>>::run;
    handlers["max." + type] = &Lanes<&max_int<T>>::run;
    handlers["shr." + type] = &Lanes<&shr<T>>::run;
    handlers["setp.eq." + type] = &Lanes<&eq<T>>::run;
    handlers["setp.ne." + type] = &Lanes<&ne<T>>::run;
    handlers["setp.lt." + type] = &Lanes<&lt<T>>::run;
    handlers["setp.le." + type] = &Lanes<&le<T>>::run;
    handlers["setp.gt." + type] = &Lanes<&gt<T>>::run;
    handlers["setp.ge." + type] = &Lanes<&ge<T>>::run;
    handlers["selp." + type] = &Lanes<&select<T>>::run;
    handlers["mov." + type] = &Lanes<&move<T>>::run;
    handlers["cvt.rn.f32." + type] = &Lanes<&convert<float, T>>::run;
    handlers["cvt.rzi." + type + ".f32"] = &Lanes<&round_to_zero<T>>::run;
}

template <typename T>
void add_signed(Handlers& handlers, const std::string& type)
{
    handlers["neg." + type] = &Lanes<&neg_int<T>>::run;
    handlers["abs." + type] = &Lanes<&abs_int<T>>::run;
}

template <typename From>
void add_conversions(Handlers& handlers, const std::string& from)
{
    handlers["cvt.s16." + from] = &Lanes<&convert<int16_t, From>>::run;
    handlers["cvt.u16." + from] = &Lanes<&convert<uint16_t, From>>::run;
    handlers["cvt.s32." + from] = &Lanes<&convert<int32_t, From>>::run;
    handlers["cvt.u32." + from] = &Lanes<&convert<uint32_t, From>>::run;
    handlers["cvt.s64." + from] = &Lanes<&convert<int64_t, From>>::run;
    handlers["cvt.u64." + from] = &Lanes<&convert<uint64_t, From>>::run;
}

template <typename Wide, typename T>
void add_wide(Handlers& handlers, const std::string& type)
{
    handlers["mul.wide." + type] = &Lanes<&mul_wide<Wide, T>>::run;
    handlers["mul.hi." + type] = &Lanes<&mul_hi<Wide, T>>::run;
    handlers["mad.wide." + type] = &Lanes<&mad_wide<Wide, T>>::run;
}

inline void add_floating_point(Handlers& handlers)
{
    handlers["add.rn.f32"] = &Lanes<&add_f32>::run;
    handlers["sub.rn.f32"] = &Lanes<&sub_f32>::run;
    handlers["mul.rn.f32"] = &Lanes<&mul_f32>::run;
    handlers["div.rn.f32"] = &Lanes<&div_f32>::run;
    handlers["fma.rn.f32"] = &Lanes<&fma_f32>::run;
    handlers["rcp.rn.f32"] = &Lanes<&rcp_f32>::run;
    handlers["sqrt.rn.f32"] = &Lanes<&sqrt_f32>::run;
    handlers["neg.f32"] = &Lanes<&neg_f32>::run;
    handlers["abs.f32"] = &Lanes<&abs_f32>::run;
    handlers["min.f32"] = &Lanes<&min_f32>::run;
    handlers["max.f32"] = &Lanes<&max_f32>::run;
    handlers["selp.f32"] = &Lanes<&select<float>>::run;
    handlers["mov.f32"] = &Lanes<&move<uint32_t>>::run;
    handlers["setp.eq.f32"] = &Lanes<&eq<float>>::run;
    handlers["setp.ne.f32"] = &Lanes<&ne_ordered>::run;
    handlers["setp.lt.f32"] = &Lanes<&lt<float>>::run;
    handlers["setp.le.f32"] = &Lanes<&le<float>>::run;
    handlers["setp.gt.f32"] = &Lanes<&gt<float>>::run;
    handlers["setp.ge.f32"] = &Lanes<&ge<float>>::run;
    handlers["setp.equ.f32"] = &Lanes<&equ>::run;
    handlers["setp.neu.f32"] = &Lanes<&ne<float>>::run;
    handlers["setp.ltu.f32"] = &Lanes<&ltu>::run;
    handlers["setp.leu.f32"] = &Lanes<&leu>::run;
    handlers["setp.gtu.f32"] = &Lanes<&gtu>::run;
    handlers["setp.geu.f32"] = &Lanes<&geu>::run;
    handlers["setp.num.f32"] = &Lanes<&is_ordered>::run;
    handlers["setp.nan.f32"] = &Lanes<&is_unordered>::run;
}

inline void add_arithmetic(Handlers& handlers)
{
    add_bits<uint16_t>(handlers, "b16");
    add_bits<uint32_t>(handlers, "b32");
    add_bits<uint64_t>(handlers, "b64");
    add_integer<int16_t>(handlers, "s16");
    add_integer<uint16_t>(handlers, "u16");
    add_integer<int32_t>(handlers, "s32");
    add_integer<uint32_t>(handlers, "u32");
    add_integer<int64_t>(handlers, "s64");
    add_integer<uint64_t>(handlers, "u64");
    add_signed<int16_t>(handlers, "s16");
    add_signed<int32_t>(handlers, "s32");
    add_signed<int64_t>(handlers, "s64");
    add_conversions<int8_t>(handlers, "s8");
    add_conversions<uint8_t>(handlers, "u8");
    add_conversions<int16_t>(handlers, "s16");
    add_conversions<uint16_t>(handlers, "u16");
    add_conversions<int32_t>(handlers, "s32");
    add_conversions<uint32_t>(handlers, "u32");
    add_conversions<int64_t>(handlers, "s64");
    add_conversions<uint64_t>(handlers, "u64");
    add_wide<int32_t, int16_t>(handlers, "s16");
    add_wide<uint32_t, uint16_t>(handlers, "u16");
    add_wide<int64_t, int32_t>(handlers, "s32");
    add_wide<uint64_t, uint32_t>(handlers, "u32");
    add_floating_point(handlers);
    handlers["and.pred"] = &Lanes<&bit_and<bool>>::run;
    handlers["or.pred"] = &Lanes<&bit_or<bool>>::run;
    handlers["xor.pred"] = &Lanes<&xor_pred>::run;
    handlers["not.pred"] = &Lanes<&bit_not_pred>::run;
    handlers["mov.pred"] = &Lanes<&move<bool>>::run;
    handlers["shf.l.wrap.b32"] = &Lanes<&shf_l_wrap>::run;
    handlers["shf.r.wrap.b32"] = &Lanes<&shf_r_wrap>::run;
    handlers["shf.l.clamp.b32"] = &Lanes<&shf_l_clamp>::run;
    handlers["shf.r.clamp.b32"] = &Lanes<&shf_r_clamp>::run;
    handlers["popc.b32"] = &Lanes<&popc<uint32_t>>::run;
    handlers["popc.b64"] = &Lanes<&popc<uint64_t>>::run;
    handlers["clz.b32"] = &Lanes<&clz<uint32_t>>::run;
    handlers["clz.b64"] = &Lanes<&clz<uint64_t>>::run;
    handlers["brev.b32"] = &Lanes<&brev>::run;
    handlers["bfind.u32"] = &Lanes<&bfind>::run;
    handlers["bfind.shiftamt.u32"] = &Lanes<&bfind_shiftamt>::run;
    handlers["bfi.b32"] = &Lanes<&bfi<uint32_t>>::run;
    handlers["bfi.b64"] = &Lanes<&bfi<uint64_t>>::run;
    handlers["bfe.u32"] = &Lanes<&bfe_u32>::run;
    handlers["bfe.s32"] = &Lanes<&bfe_s32>::run;
    handlers["unpack"] = &unpack;
    handlers["pack"] = &pack;
    handlers["prmt.b32"] = &Lanes<&prmt>::run;
}

}  // namespace ptx
