// Finds unordered accesses to the same byte of memory, at least one of them a write.
//
// Two accesses of one launch are ordered if one thread makes both, if a barrier of their block lies between them, or,
// in one warp, a barrier of the warp that all its lanes pass. Lockstep does not order the lanes of a warp: no GPU since
// sm_70 guarantees it. Atomic accesses do not conflict with each other. Blocks of a launch are never ordered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "warp.h"

namespace ptx {

enum class Kind : uint8_t { read, write, atomic };
constexpr uint32_t n_kinds = 3;

/// The last accesses of one kind to a byte. Intervals between barriers are numbered through all blocks and launches.
struct Access {
    uint32_t interval = 0;
    uint32_t phase = 0;
    uint32_t other_block_in = 0;  // the last launch in which more than one block made such an access
    int32_t pc = 0;
    uint16_t thread = 0;  // the last one
    uint8_t several = 0;  // in this interval: 0 one thread, 1 several of a warp, 2 several warps
};

struct History {
    Access last[n_kinds];
    uint32_t non_coherent_in = 0;  // the last launch that read the byte through the non-coherent cache
};

/// Histories of the bytes of a region of memory, created at first use.
class Histories {
  public:
    explicit Histories(uint64_t bytes) : pages_((bytes + page - 1) / page) {}

    History& of(uint64_t offset)
    {
        std::unique_ptr<History[]>& place = pages_[offset / page];
        if (!place) place = std::make_unique<History[]>(page);
        return place[offset % page];
    }

  private:
    static constexpr uint64_t page = 1024;
    std::vector<std::unique_ptr<History[]>> pages_;
};

/// A conflict of two instructions (CONFLICT in machine.py): the first example, and the number of affected bytes.
struct Conflict {
    int32_t pc, other_pc;
    uint32_t kind, other_kind;
    uint32_t block, thread, other_thread;
    uint32_t space;
    uint32_t equal;  // both wrote the same value
    uint32_t between_blocks;
    uint64_t address, times;
};

class ConflictDetector {
  public:
    void begin_launch()
    {
        ++launch_;
        first_of_launch_ = interval_ + 1;
        found_.clear();
    }
    void begin_block(uint32_t block)
    {
        block_ = block;
        first_of_block_ = ++interval_;
    }
    void pass_barrier() { ++interval_; }

    /// Record an access. `equal`: it writes the value that the memory already has.
    void record(History& history, Kind kind, Space space, const Warp& warp, uint32_t lane, int32_t pc, uint64_t address,
                bool equal, bool non_coherent)
    {
        const uint32_t thread = warp.index * warp_size + lane;
        for (const Kind other : {Kind::read, Kind::write, Kind::atomic}) {
            if (kind == other && kind != Kind::write) continue;
            const Access& access = history.last[static_cast<uint32_t>(other)];
            const bool between_blocks = space == Space::global && is_of_other_block(access);
            bool conflict = between_blocks || is_unordered(access, warp, thread);
            // The non-coherent cache may hold the value from before the launch.
            if (non_coherent && other != Kind::read) conflict |= access.interval >= first_of_launch_;
            if (kind != Kind::read && other == Kind::read) conflict |= history.non_coherent_in == launch_;
            if (conflict)
                report({pc, access.pc, static_cast<uint32_t>(kind), static_cast<uint32_t>(other), block_, thread,
                        access.thread, static_cast<uint32_t>(space),
                        equal && kind == Kind::write && other == Kind::write, between_blocks, address, 1});
        }
        if (non_coherent) history.non_coherent_in = launch_;
        update(history.last[static_cast<uint32_t>(kind)], warp, thread, pc);
    }

    std::vector<Conflict> found() const
    {
        std::vector<Conflict> conflicts;
        for (const auto& [key, conflict] : found_) conflicts.push_back(conflict);
        return conflicts;
    }

  private:
    bool is_of_other_block(const Access& access) const
    {
        return access.other_block_in == launch_ ||
               (access.interval >= first_of_launch_ && access.interval < first_of_block_);
    }
    static bool same_warp(const Access& access, const Warp& warp)
    {
        return access.several < 2 && access.thread / warp_size == warp.index;
    }
    bool is_unordered(const Access& access, const Warp& warp, uint32_t thread) const
    {
        if (access.interval != interval_) return false;
        if (access.several == 0 && access.thread == thread) return false;
        return !(same_warp(access, warp) && access.phase < warp.phase);
    }
    void update(Access& access, const Warp& warp, uint32_t thread, int32_t pc)
    {
        if (access.interval >= first_of_launch_ && access.interval < first_of_block_) access.other_block_in = launch_;
        const bool adds = is_unordered(access, warp, thread);
        const uint8_t several = !adds ? 0 : same_warp(access, warp) ? 1 : 2;
        const bool same_interval = access.interval == interval_;
        const bool superseded = same_interval && same_warp(access, warp) && access.phase < warp.phase;
        access.several = same_interval && !superseded ? std::max(access.several, several) : several;
        access.interval = interval_;
        access.phase = warp.phase;
        access.thread = static_cast<uint16_t>(thread);
        access.pc = pc;
    }
    void report(const Conflict& conflict)
    {
        const auto key = std::make_tuple(conflict.pc, conflict.other_pc, conflict.kind, conflict.other_kind,
                                         conflict.equal, conflict.between_blocks);
        const auto [place, is_new] = found_.emplace(key, conflict);
        if (!is_new) ++place->second.times;
    }

    uint32_t launch_ = 0, block_ = 0;
    uint32_t interval_ = 0, first_of_launch_ = 1, first_of_block_ = 1;
    std::map<std::tuple<int32_t, int32_t, uint32_t, uint32_t, uint32_t, uint32_t>, Conflict> found_;
};

}  // namespace ptx
