// Instructions that work lane by lane on registers, by their names in PTX (PTX ISA, "Instruction Set").
//
// Only families of instructions that NVRTC emits for our kernels; other names are refused when a kernel is loaded. Also
// refused: add.f32 and mul.f32 without .rn, which ptxas may fuse, and all instructions with .ftz or .approx, whose
// rounding differs from the CPU's.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "floating_point.h"
#include "integers.h"
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

// ---- values of any type

template <typename To, typename From>
To convert(From value)
{
    return static_cast<To>(value);
}
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

/// mov with several results: the parts of a word, the lowest first. `bytes`: size of the word. `count`: number of
/// parts.
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
