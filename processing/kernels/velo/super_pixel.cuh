// Super-pixels: 2 columns x 4 rows of pixels in one byte (formats.md B8, hlt1-allen.md 2.2).
//
// Bits 0-3 of the pattern are the column of smaller x from bottom to top, bits 4-7 the other. A cluster candidate is a lit
// pixel whose neighbours to the north, north-east, east and south-east are dark; every 8-connected cluster has at least
// one, the top pixel of its east-most column.
#pragma once

#include "geometry.cuh"

namespace hlt {

constexpr uint32_t n_super_pixel_columns = n_velo_columns / 2;
constexpr uint32_t n_super_pixel_rows = n_velo_rows / 4;

struct super_pixel {
    uint32_t word;

    __device__ uint32_t pattern() const { return word & 0xffu; }
    __device__ uint32_t row() const { return word >> 8 & 0x3fu; }
    __device__ uint32_t column() const { return word >> 14 & 0x1ffu; }
    __device__ uint32_t second_sensor() const { return word >> 23 & 1u; }  // version 4 only
    __device__ bool is_isolated() const { return (word >> 31) != 0u; }
    __device__ bool is_valid() const { return column() < n_super_pixel_columns; }
};

/// Candidates of a pattern with nothing around it: never less than with neighbours, never more than 2.
__device__ uint32_t count_candidates(uint32_t pattern)
{
    const uint32_t west = pattern & 15u, east = pattern >> 4 & 15u;
    const uint32_t east_candidates = east & ~(east >> 1);
    const uint32_t west_candidates = west & ~(west >> 1) & ~(east | east >> 1 | east << 1);
    const uint32_t candidates = west_candidates | east_candidates << 4;
    return static_cast<uint32_t>(__popc(candidates));
}

/// The northern one of the two clusters of an isolated pattern, 0 if it is one cluster. Exact for all 256 patterns.
__device__ uint32_t second_cluster(uint32_t pattern)
{
    if ((pattern & 0x22u) == 0u && (pattern & 0x11u) != 0u && (pattern & 0xccu) != 0u) return pattern & 0xccu;
    if ((pattern & 0x44u) == 0u && (pattern & 0x88u) != 0u && (pattern & 0x33u) != 0u) return pattern & 0x88u;
    return 0u;
}

}  // namespace hlt
