// Communication between the lanes of a warp: shuffle, vote, match, reduction.
//
// Each instruction has a mask of participating lanes. All of them that have not returned must reach the instruction
// together.
#pragma once

#include "arithmetic.h"

namespace ptx {

/// The lanes at the instruction must be exactly the running lanes of the mask of members.
inline void check_members(Warp& warp, int32_t slot, uint32_t mask)
{
    const uint64_t* const masks = warp.slot(slot);
    uint32_t agreed = 0;
    bool first = true;
    for_lanes(mask, [&](uint32_t lane) {
        const uint32_t named = get<uint32_t>(masks[lane]);
        if (!(named >> lane & 1u)) throw Fault("a lane is not in its own mask of members");
        if (!first && named != agreed) throw Fault("lanes name different masks of members");
        agreed = named;
        first = false;
    });
    if ((agreed & warp.alive) != mask) throw Fault("lanes of the mask of members do not take part");
}

enum class Shuffle { up, down, butterfly, index };

/// shfl.sync: results {value, whether the source is in range}, operands {value, distance or lane, clamp, members}.
template <Shuffle mode>
void shuffle(Warp& warp, const Instruction& instruction, uint32_t mask)
{
    check_members(warp, instruction.operands[3], mask);
    uint64_t values[warp_size];
    std::memcpy(values, warp.slot(instruction.operands[0]), sizeof values);
    const uint64_t* const distances = warp.slot(instruction.operands[1]);
    const uint64_t* const clamps = warp.slot(instruction.operands[2]);
    uint64_t taken[warp_size], in_range[warp_size];
    for_lanes(mask, [&](uint32_t lane) {
        const uint32_t by = get<uint32_t>(distances[lane]) & 31u;
        const uint32_t clamp = get<uint32_t>(clamps[lane]) & 31u, segment = get<uint32_t>(clamps[lane]) >> 8 & 31u;
        const uint32_t last = (lane & segment) | (clamp & ~segment);
        int32_t source = 0;
        if constexpr (mode == Shuffle::up) source = static_cast<int32_t>(lane) - static_cast<int32_t>(by);
        if constexpr (mode == Shuffle::down) source = static_cast<int32_t>(lane + by);
        if constexpr (mode == Shuffle::butterfly) source = static_cast<int32_t>(lane ^ by);
        if constexpr (mode == Shuffle::index) source = static_cast<int32_t>((lane & segment) | (by & ~segment));
        const bool inside =
            mode == Shuffle::up ? source >= static_cast<int32_t>(last) : source <= static_cast<int32_t>(last);
        const uint32_t from = inside ? static_cast<uint32_t>(source) : lane;
        // The value of a lane that does not participate is undefined.
        taken[lane] = mask >> from & 1u ? get<uint32_t>(values[from]) : 0x01010101u * poison;
        in_range[lane] = inside;
    });
    for_lanes(mask, [&](uint32_t lane) {
        if (instruction.results[0] >= 0) warp.slot(instruction.results[0])[lane] = taken[lane];
        if (instruction.results[1] >= 0) warp.slot(instruction.results[1])[lane] = in_range[lane];
    });
}

enum class Vote { ballot, any, all, uniform };

/// vote.sync: operands {predicate, members}.
template <Vote mode>
void vote(Warp& warp, const Instruction& instruction, uint32_t mask)
{
    check_members(warp, instruction.operands[1], mask);
    const uint64_t* const predicates = warp.slot(instruction.operands[0]);
    uint32_t ballot = 0;
    for_lanes(mask, [&](uint32_t lane) { ballot |= static_cast<uint32_t>(get<bool>(predicates[lane])) << lane; });
    uint32_t result = ballot;
    if constexpr (mode == Vote::any) result = ballot != 0;
    if constexpr (mode == Vote::all) result = ballot == mask;
    if constexpr (mode == Vote::uniform) result = ballot == mask || ballot == 0;
    for_lanes(mask, [&](uint32_t lane) { warp.slot(instruction.results[0])[lane] = result; });
}

/// match.any.sync: operands {value, members}; each lane gets the mask of the lanes that hold its value.
template <typename T>
void match_any(Warp& warp, const Instruction& instruction, uint32_t mask)
{
    check_members(warp, instruction.operands[1], mask);
    uint64_t values[warp_size];
    std::memcpy(values, warp.slot(instruction.operands[0]), sizeof values);
    for_lanes(mask, [&](uint32_t lane) {
        uint32_t same = 0;
        for_lanes(mask, [&](uint32_t other) {
            same |= static_cast<uint32_t>(get<T>(values[lane]) == get<T>(values[other])) << other;
        });
        warp.slot(instruction.results[0])[lane] = same;
    });
}

/// redux.sync: operands {value, members}.
template <typename T, T (*combine)(T, T)>
void reduce(Warp& warp, const Instruction& instruction, uint32_t mask)
{
    check_members(warp, instruction.operands[1], mask);
    const uint64_t* const values = warp.slot(instruction.operands[0]);
    T result{};
    bool first = true;
    for_lanes(mask, [&](uint32_t lane) {
        result = first ? get<T>(values[lane]) : combine(result, get<T>(values[lane]));
        first = false;
    });
    for_lanes(mask, [&](uint32_t lane) { warp.slot(instruction.results[0])[lane] = put(result); });
}

inline void active_mask(Warp& warp, const Instruction& instruction, uint32_t mask)
{
    for_lanes(mask, [&](uint32_t lane) { warp.slot(instruction.results[0])[lane] = mask; });
}

/// membar and fence: instructions run one after the other, so every access is visible at once.
inline void fence(Warp&, const Instruction&, uint32_t) {}

inline void add_lane_operations(Handlers& handlers)
{
    handlers["shfl.sync.up.b32"] = &shuffle<Shuffle::up>;
    handlers["shfl.sync.down.b32"] = &shuffle<Shuffle::down>;
    handlers["shfl.sync.bfly.b32"] = &shuffle<Shuffle::butterfly>;
    handlers["shfl.sync.idx.b32"] = &shuffle<Shuffle::index>;
    handlers["vote.sync.ballot.b32"] = &vote<Vote::ballot>;
    handlers["vote.sync.any.pred"] = &vote<Vote::any>;
    handlers["vote.sync.all.pred"] = &vote<Vote::all>;
    handlers["vote.sync.uni.pred"] = &vote<Vote::uniform>;
    handlers["match.any.sync.b32"] = &match_any<uint32_t>;
    handlers["match.any.sync.b64"] = &match_any<uint64_t>;
    handlers["redux.sync.add.u32"] = &reduce<uint32_t, &add<uint32_t>>;
    handlers["redux.sync.add.s32"] = &reduce<uint32_t, &add<uint32_t>>;
    handlers["redux.sync.min.u32"] = &reduce<uint32_t, &min_int<uint32_t>>;
    handlers["redux.sync.max.u32"] = &reduce<uint32_t, &max_int<uint32_t>>;
    handlers["redux.sync.min.s32"] = &reduce<int32_t, &min_int<int32_t>>;
    handlers["redux.sync.max.s32"] = &reduce<int32_t, &max_int<int32_t>>;
    handlers["redux.sync.and.b32"] = &reduce<uint32_t, &bit_and<uint32_t>>;
    handlers["redux.sync.or.b32"] = &reduce<uint32_t, &bit_or<uint32_t>>;
    handlers["redux.sync.xor.b32"] = &reduce<uint32_t, &bit_xor<uint32_t>>;
    handlers["activemask.b32"] = &active_mask;
    handlers["fence"] = &fence;
}

}  // namespace ptx
