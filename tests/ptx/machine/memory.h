// The memory of a launch: global regions, and shared, local and parameter memory behind windows of generic addresses.
#pragma once

#include <algorithm>
#include <memory>
#include <set>

#include "arithmetic.h"
#include "conflicts.h"

namespace ptx {

/// The space of a generic address: its upper 16 bits, which no address of the host has (translation.py).
constexpr uint64_t window_of(uint64_t address) { return address >> 48; }
constexpr uint64_t shared_window = 0xa000, local_window = 0xb000, param_window = 0xc000;
constexpr uint64_t inside_window(uint64_t address) { return address & 0xffffffffffffull; }

constexpr uint64_t sector_bytes = 32;

/// Sectors of 32 bytes (TOUCHED in machine.py).
struct Touched {
    uint64_t read, written;
};

/// Accesses of a launch to a sector of global memory.
enum Touch : uint8_t { touch_read = 1, touch_written = 2 };

struct Region {
    uint64_t begin, end;
    std::unique_ptr<Histories> histories;
    std::vector<uint8_t> touched;  // [sector]

    /// A read of a sector that the launch has written comes from a cache.
    void touch(uint64_t address, bool reads, bool writes)
    {
        uint8_t& sector = touched[(address - begin) / sector_bytes];
        if (reads && !(sector & touch_written)) sector |= touch_read;
        if (writes) sector |= touch_written;
    }
};

/// Place of the bytes of an access; `region` only for global memory. Parameters and local memory belong to one thread
/// and have no histories.
struct Place {
    std::byte* bytes;
    Histories* histories;
    uint64_t offset;  // in the histories
    Space space;
    Region* region;
};

class Memory {
  public:
    ConflictDetector conflicts;

    void add_region(uint64_t begin, uint64_t bytes)
    {
        regions_.push_back({begin, begin + bytes, std::make_unique<Histories>(bytes),
                            std::vector<uint8_t>((bytes + sector_bytes - 1) / sector_bytes)});
        std::sort(regions_.begin(), regions_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
        last_ = nullptr;
    }

    /// Memory that the kernel declares, for a launch.
    void prepare(std::vector<Variable> shared, uint64_t shared_bytes, std::vector<Variable> local,
                 const std::byte* param, uint64_t param_bytes)
    {
        shared_variables_ = std::move(shared);
        shared_.assign(shared_bytes, std::byte{poison});
        shared_histories_ = std::make_unique<Histories>(shared_bytes);
        local_variables_ = std::move(local);
        param_ = param;
        param_bytes_ = param_bytes;
        for (Region& region : regions_) std::fill(region.touched.begin(), region.touched.end(), uint8_t{0});
    }

    /// Numbers of sectors that the last launch has read and written in the region that starts at an address.
    Touched touched(uint64_t begin) const
    {
        Touched sectors{};
        for (const Region& region : regions_) {
            if (region.begin != begin) continue;
            for (const uint8_t sector : region.touched) {
                sectors.read += (sector & touch_read) != 0;
                sectors.written += (sector & touch_written) != 0;
            }
        }
        return sectors;
    }
    void begin_block() { std::fill(shared_.begin(), shared_.end(), std::byte{poison}); }

    Place place_of(Warp& warp, uint32_t lane, const Instruction& instruction, uint64_t address)
    {
        const uint64_t bytes = static_cast<uint64_t>(instruction.bytes) * instruction.count;
        if (address % bytes != 0) throw Fault("misaligned address " + hexadecimal(address));
        Space space = instruction.space;
        if (space == Space::generic) {
            const uint64_t window = window_of(address);
            space = window == shared_window  ? Space::shared
                    : window == local_window ? Space::local
                    : window == param_window ? Space::param
                                             : Space::global;
            if (space != Space::global) address = inside_window(address);
        }
        if (space == Space::global) {
            Region& region = region_of(address, bytes);
            return {reinterpret_cast<std::byte*>(address), region.histories.get(), address - region.begin, space,
                    &region};
        }
        if (space == Space::shared) {
            require_variable(shared_variables_, address, bytes, "shared");
            return {shared_.data() + address, shared_histories_.get(), address, space, nullptr};
        }
        if (space == Space::local) {
            require_variable(local_variables_, address, bytes, "local");
            return {warp.local.data() + lane * (warp.local.size() / warp_size) + address, nullptr, 0, space, nullptr};
        }
        if (address + bytes > param_bytes_) throw Fault("address " + hexadecimal(address) + " behind the parameters");
        return {const_cast<std::byte*>(param_) + address, nullptr, 0, space, nullptr};
    }

    static std::string hexadecimal(uint64_t value)
    {
        static const char digits[] = "0123456789abcdef";
        std::string text;
        for (; value != 0 || text.empty(); value >>= 4) text.insert(text.begin(), digits[value & 15u]);
        return "0x" + text;
    }

  private:
    Region& region_of(uint64_t address, uint64_t bytes)
    {
        if (last_ == nullptr || address < last_->begin || address + bytes > last_->end) {
            const auto behind = std::upper_bound(regions_.begin(), regions_.end(), address,
                                                 [](uint64_t at, const Region& region) { return at < region.begin; });
            if (behind == regions_.begin() || address + bytes > std::prev(behind)->end)
                throw Fault("address " + hexadecimal(address) + " lies in no allocated memory");
            last_ = &*std::prev(behind);
        }
        return *last_;
    }
    static void require_variable(const std::vector<Variable>& variables, uint64_t address, uint64_t bytes,
                                 const char* space)
    {
        for (const Variable& variable : variables)
            if (address >= variable.begin && address + bytes <= variable.end) return;
        throw Fault("address " + hexadecimal(address) + " lies in no variable in " + space + " memory");
    }

    std::vector<Region> regions_;
    Region* last_ = nullptr;
    std::vector<Variable> shared_variables_, local_variables_;
    std::vector<std::byte> shared_;
    std::unique_ptr<Histories> shared_histories_;
    const std::byte* param_ = nullptr;
    uint64_t param_bytes_ = 0;
};

/// Atomic operation of a lane on a word in memory: the new value from the old one and two operands.
using AtomicFunction = uint64_t (*)(uint64_t old, uint64_t operand, uint64_t second);

template <typename T, T (*combine)(T, T)>
uint64_t atomic(uint64_t old, uint64_t operand, uint64_t)
{
    return put(combine(get<T>(old), get<T>(operand)));
}
template <typename T>
uint64_t exchange(uint64_t, uint64_t operand, uint64_t)
{
    return put(get<T>(operand));
}
template <typename T>
uint64_t compare_and_swap(uint64_t old, uint64_t expected, uint64_t value)
{
    return get<T>(old) == get<T>(expected) ? put(get<T>(value)) : old;
}

using AtomicFunctions = std::unordered_map<std::string, AtomicFunction>;

inline void add_atomics(AtomicFunctions& functions)
{
    functions["atom.add.u32"] = &atomic<uint32_t, &add<uint32_t>>;
    functions["atom.add.u64"] = &atomic<uint64_t, &add<uint64_t>>;
    functions["atom.exch.b32"] = &exchange<uint32_t>;
    functions["atom.exch.b64"] = &exchange<uint64_t>;
    functions["atom.min.u32"] = &atomic<uint32_t, &min_int<uint32_t>>;
    functions["atom.max.u32"] = &atomic<uint32_t, &max_int<uint32_t>>;
    functions["atom.or.b32"] = &atomic<uint32_t, &bit_or<uint32_t>>;
    functions["atom.and.b32"] = &atomic<uint32_t, &bit_and<uint32_t>>;
    functions["atom.cas.b32"] = &compare_and_swap<uint32_t>;
    functions["atom.cas.b64"] = &compare_and_swap<uint64_t>;
}

}  // namespace ptx
