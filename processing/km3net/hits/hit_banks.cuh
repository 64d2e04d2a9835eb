// Banks of hits (docs/formats/km3net-hits.md). A hit is one word of 64 bits: time, PMT, charge.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "km3net/geometry/generated/pmt_types.h"
#include "km3net/hits/generated/km3net_flags.h"
#include "km3net/hits/generated/km3net_types.h"

namespace hlt {

__device__ __forceinline__ uint32_t time_of_hit(uint64_t hit) { return static_cast<uint32_t>(hit >> 32); }
__device__ __forceinline__ uint32_t pmt_of_hit(uint64_t hit) { return static_cast<uint32_t>(hit >> 16) & 0xFFFFu; }
__device__ __forceinline__ uint32_t charge_of_hit(uint64_t hit) { return static_cast<uint32_t>(hit) & 0xFFFFu; }

/// The hit at another time, ns that are not negative.
__device__ __forceinline__ uint64_t hit_at(uint64_t hit, int64_t ns)
{
    return (hit & 0xFFFFFFFFu) | static_cast<uint64_t>(ns) << 32;
}

/// Hits of a bank; 0 for a bank that is not used.
__device__ uint32_t hits_of_bank(const fragment_view& bank, const mfp_row& row)
{
    const bool sound = bank.type == km3net_hits_bank && row.version == km3net_hits_version;
    return sound && bank.size % km3net_hit_bytes == 0u ? bank.size / km3net_hit_bytes : 0u;
}

/// Whether a bank is there, but not used.
__device__ bool is_bad_bank(const fragment_view& bank, const mfp_row& row)
{
    return bank.type != no_bank &&
           (bank.type != km3net_hits_bank || row.version != km3net_hits_version || bank.size % km3net_hit_bytes != 0u);
}

/// Hit `i` of a bank.
__device__ __forceinline__ uint64_t load_hit(const uint8_t* hits, uint32_t i)
{
    const uint8_t* const bytes = hits + km3net_hit_bytes * i;
    return load_u32(bytes) | static_cast<uint64_t>(load_u32(bytes + 4)) << 32;
}

/// Whether a hit that follows another one in a bank is out of order: hits are sorted by PMT, those of a PMT by time.
__device__ __forceinline__ bool is_unsorted(uint64_t hit, uint64_t previous)
{
    return pmt_of_hit(hit) < pmt_of_hit(previous) ||
           (pmt_of_hit(hit) == pmt_of_hit(previous) && time_of_hit(hit) < time_of_hit(previous));
}

}  // namespace hlt
