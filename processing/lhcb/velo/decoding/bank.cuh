// View of a VELO raw bank for the decoders (docs/formats/velo-banks.md): its kind, its sensor, its words.
//
// Type 73 holds retina clusters, type 63 super-pixels. Versions 2 and 3 hold one sensor behind a count word; version 4
// holds a pair of sensors without a count, and a bit of each word picks the sensor. A view never reaches beyond its
// fragment, even if the bank is damaged.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/raw_data/generated/raw_data_types.h"
#include "lhcb/velo/generated/velo_types.h"

namespace hlt {

/// The data words of a bank. An offset instead of a pointer, because lanes exchange it through shared memory: the
/// compiler cannot know that a pointer read from there points to global memory.
struct velo_words {
    uint32_t offset;   // in the bytes of the batch
    uint32_t sensor;   // the first one of a pair
    uint32_t version;  // of the bank

    __device__ uint32_t word(const raw_banks& banks, uint32_t i) const
    {
        return load_u32(banks.bytes + (offset + 4u * i));
    }
};

enum class velo_bank_kind : uint32_t { absent, broken, retina, super_pixels };

/// A bank as its fragment header and source id describe it. The payload is not read.
struct velo_bank {
    velo_bank_kind kind;
    uint32_t version;
    uint32_t sensor;         // the first one of a pair
    uint32_t max_words;      // that fit into the fragment
    const uint8_t* payload;  // begins with the count word before version 4
    bool has_count;

    __device__ velo_words words(const raw_banks& banks) const
    {
        return {static_cast<uint32_t>(payload - banks.bytes) + (has_count ? 4u : 0u), sensor, version};
    }

    /// Number of words of the bank. A count that exceeds the fragment sets `broken` and gives 0.
    __device__ uint32_t count_words(bool& broken) const
    {
        if (!has_count) return max_words;
        const uint32_t count = load_u32(payload);
        if (count <= max_words) return count;
        broken = true;
        return 0;
    }
};

__device__ velo_bank velo_bank_of(const fragment_view& fragment, const mfp_row& row)
{
    velo_bank bank{velo_bank_kind::broken, row.version, 0, 0, fragment.data, row.version < velo_version_sensor_pairs};
    if (fragment.type == no_bank) {
        bank.kind = velo_bank_kind::absent;
        return bank;
    }
    if (fragment.type != retina_bank && fragment.type != super_pixel_bank) return bank;
    if (row.version < velo_version_eighths || row.version > velo_version_sensor_pairs) return bank;
    const uint32_t number = row.source_id & 0x1ffu;
    bank.sensor = bank.has_count ? number : 2u * number;
    if (bank.sensor >= n_velo_sensors) return bank;
    if (bank.has_count ? fragment.size < 4u : fragment.size % 4u != 0u) return bank;
    bank.max_words = fragment.size / 4u - (bank.has_count ? 1u : 0u);
    bank.kind = fragment.type == retina_bank ? velo_bank_kind::retina : velo_bank_kind::super_pixels;
    return bank;
}

/// MFPs of the VELO in the MEP of an event: both halves are neighbours, because rows are sorted by source id.
__device__ row_range velo_rows_of(const raw_banks& banks, uint32_t mep)
{
    const row_range side_a = rows_of(banks, mep, velo_a);
    const row_range side_c = rows_of(banks, mep, velo_c);
    return {side_a.count > 0u ? side_a.first : side_c.first, side_a.count + side_c.count};
}

}  // namespace hlt
