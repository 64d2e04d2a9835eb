// Data of an event that do not fit in one bank: equal units, spread over the banks of several sources
// (docs/formats/data-parts.md). The same rules as protocol/raw_data/data_parts.py.
#pragma once

#include "framework/device/raw_banks.cuh"

namespace hlt {

constexpr uint32_t part_header_bytes = 16;
constexpr uint32_t no_part = 0xffffffffu;

/// One part: units `first` to `first + count` of `total`. Only a sound part may be read.
struct data_part {
    const uint8_t* own;    // the header of the chain, `own_bytes` long
    const uint8_t* units;  // count * unit_bytes bytes, aligned to 4
    uint32_t first;
    uint32_t count;
    uint32_t total;
    uint32_t unit_bytes;
    bool sound;
};

/// The part in a fragment whose chain has a header of `own_bytes`, a multiple of 4. Sound: units exist, their number
/// and size agree with the size of the fragment, and they lie in the whole.
__device__ data_part part_of(const fragment_view& bank, uint32_t own_bytes)
{
    data_part part{nullptr, nullptr, 0, 0, 0, 0, false};
    const uint32_t headers = part_header_bytes + own_bytes;
    if (bank.size < headers) return part;
    part.first = load_u32(bank.data);
    part.count = load_u32(bank.data + 4);
    part.total = load_u32(bank.data + 8);
    part.unit_bytes = load_u32(bank.data + 12);
    part.own = bank.data + part_header_bytes;
    part.units = bank.data + headers;
    const uint64_t held = static_cast<uint64_t>(part.count) * part.unit_bytes;
    part.sound = part.count > 0u && part.unit_bytes > 0u && part.unit_bytes % 4u == 0u && part.first < part.total &&
                 part.count <= part.total - part.first && held == bank.size - headers;
    return part;
}

/// What the parts of an event leave open.
struct unit_coverage {
    bool missing;      // a unit is in no part
    bool overlapping;  // a unit is in several parts
};

/// The threads of a block write owner[unit]: the lowest number of a part that has the unit, or no_part.
///
/// part_of(i): part i of n_parts; an unsound part has no units, and the units of a sound one are below n_units. Each
/// thread gets the coverage that it has seen itself; the block must combine them. Afterwards the owner of a unit is
/// only known to the thread of that unit, threadIdx.x + k * blockDim.x, until a barrier.
template <typename PartOf>
__device__ unit_coverage cover_units(uint32_t n_parts, uint32_t n_units, const PartOf& part_of, uint32_t* owner)
{
    for (uint32_t unit = threadIdx.x; unit < n_units; unit += blockDim.x) owner[unit] = no_part;
    block_barrier();
    unit_coverage seen{false, false};
    for (uint32_t i = 0; i < n_parts; ++i) {
        const data_part part = part_of(i);
        if (!part.sound) continue;
        for (uint32_t unit = threadIdx.x; unit < part.count; unit += blockDim.x)
            if (atomicMin(&owner[part.first + unit], i) != no_part) seen.overlapping = true;
    }
    block_barrier();
    for (uint32_t unit = threadIdx.x; unit < n_units; unit += blockDim.x)
        if (owner[unit] == no_part) seen.missing = true;
    return seen;
}

}  // namespace hlt
