// Words of retina clusters (docs/formats/velo-banks.md).
#pragma once

#include "lhcb/velo/hit.cuh"

namespace hlt {

/// Layout of the words of a bank version.
struct retina_format {
    uint32_t fraction_bits;  // of each coordinate
    float fraction_unit;     // pixels
    bool sensor_pairs;       // a bit of the word picks the sensor
};

__device__ retina_format retina_format_of(uint32_t version)
{
    const bool eighths = version == velo_version_eighths;
    return {eighths ? 3u : 2u, eighths ? 0.125f : 0.25f, version == velo_version_sensor_pairs};
}

/// A word of a bank version, for what needs no geometry.
struct retina_word {
    uint32_t word;
    uint32_t version;

    __device__ uint32_t fraction_bits() const { return retina_format_of(version).fraction_bits; }
    __device__ uint32_t column() const { return word >> (2u * fraction_bits() + 8u) & 0x3ffu; }
    __device__ uint32_t second_sensor() const { return version == velo_version_sensor_pairs ? word >> 22 & 1u : 0u; }

    /// Neither a filler nor a column that does not exist.
    __device__ bool is_hit() const { return word != 0u && column() < n_velo_columns; }

    __device__ uint32_t id(uint32_t sensor) const
    {
        const uint32_t bits = fraction_bits(), fraction_mask = (1u << bits) - 1u;
        return velo_lhcb_id(sensor, column(), word >> bits & 0xffu, (word >> (bits + 8u) & fraction_mask) != 0u,
                            (word & fraction_mask) != 0u);
    }

    /// Number of pixels, by the table retina_sizes; 0 where the word does not hold it: in version 2, and without any
    /// bit above the position, as this project's simulation writes words.
    __device__ uint32_t pixels(uint32_t sensor, const uint8_t* sizes) const
    {
        if (version == velo_version_eighths || word >> 23 == 0u) return 0;
        const bool is_isolated = (word >> 30 & 1u) != 0u, is_outer = sensor % 4u == 0u || sensor % 4u == 3u;
        const uint32_t kind = is_isolated ? retina_isolated : is_outer ? retina_square : retina_square_reversed;
        const uint32_t number = word >> 23 & (is_isolated ? 63u : 31u);
        return sizes[kind * n_retina_keys + (number << 4 | (word >> 8 & 12u) | (word & 3u))];
    }
};

}  // namespace hlt
