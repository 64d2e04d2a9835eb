// Super-pixels: 2 columns x 4 rows of pixels in one byte (docs/formats/velo-banks.md), and clusters of them.
//
// Bits 0-3 of the pattern are the column of smaller x from bottom to top, bits 4-7 the other column. A cluster
// candidate is a lit pixel whose neighbours to the north, north-east, east and south-east are dark. Every 8-connected
// cluster has at least one: the top pixel of its east-most column (docs/physics/velo-clustering.md).
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/velo/generated/velo_types.h"

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

/// Number of candidates of a pattern with dark neighbours: at least the number with lit neighbours, at most 2.
/// `Patterns`: one pattern or a vector of them.
template <typename Patterns>
__device__ Patterns candidates_of_pattern(const Patterns& pattern)
{
    const Patterns west = pattern & 15u, east = pattern >> 4 & 15u;
    const Patterns west_candidates = west & ~(west >> 1) & ~(east | east >> 1 | east << 1);
    return west_candidates | (east & ~(east >> 1)) << 4;
}

/// The northern one of the two clusters of an isolated pattern; 0 if it has one cluster. Exact for all 256 patterns.
template <typename Patterns>
__device__ Patterns second_cluster(const Patterns& pattern)
{
    const auto north_apart = ((pattern & 0x22u) == 0u) & ((pattern & 0x11u) != 0u) & ((pattern & 0xccu) != 0u);
    const auto top_apart = ((pattern & 0x44u) == 0u) & ((pattern & 0x88u) != 0u) & ((pattern & 0x33u) != 0u);
    return north_apart ? pattern & 0xccu : top_apart ? pattern & 0x88u : pattern & 0u;
}

/// Patterns of a super-pixel and of the neighbours that determine its candidates.
struct super_pixel_surroundings {
    uint32_t own, north, north_east, east, south_east, south;
};

/// Candidates of a super-pixel, as bits of its pattern.
__device__ uint32_t find_candidates(const super_pixel_surroundings& s)
{
    // Pixel (c, r) with c = 0..2 and r = -1..4 is bit 6 c + r + 1: north is 1 further, south-east 5, east 6,
    // north-east 7.
    const uint32_t lit = (s.south >> 3 & 1u) | (s.own & 15u) << 1 | (s.north & 1u) << 5 | (s.south >> 7 & 1u) << 6 |
                         (s.own >> 4 & 15u) << 7 | (s.north >> 4 & 1u) << 11 | (s.south_east >> 3 & 1u) << 12 |
                         (s.east & 15u) << 13 | (s.north_east & 1u) << 17;
    const uint32_t candidates = lit & ~(lit >> 1) & ~(lit >> 5) & ~(lit >> 6) & ~(lit >> 7);
    return (candidates >> 1 & 15u) | (candidates >> 7 & 15u) << 4;
}

/// Sums over the pixels of a cluster, columns and rows counted from the corner of the sensor.
struct cluster_sums {
    int32_t n, column, row;
};

/// Sum of the positions of the set bits in each 16-bit half of a word.
__device__ int32_t sum_of_rows(uint64_t bits)
{
    return __popcll(bits & 0xaaaaaaaaaaaaaaaau) + 2 * __popcll(bits & 0xccccccccccccccccu) +
           4 * __popcll(bits & 0xf0f0f0f0f0f0f0f0u) + 8 * __popcll(bits & 0xff00ff00ff00ff00u);
}

__device__ cluster_sums sum_pattern(uint32_t pattern, int32_t column, int32_t row)
{
    const int32_t n = __popc(pattern);
    const int32_t rows = sum_of_rows((pattern & 15u) | (pattern >> 4) << 16);
    return {n, 2 * column * n + __popc(pattern >> 4), 4 * row * n + rows};
}

/// The window around a candidate: 3 columns by 4 rows of super-pixels. The super-pixel of the candidate is in the
/// middle column and the second row from the north. Each word holds three columns of 16 pixels, south first.
struct cluster_window {
    uint64_t west, east;
};

/// Pixels and their neighbours inside the three columns of a word.
__device__ uint64_t grow_rows(uint64_t columns)
{
    return columns | (columns << 1 & 0xfffefffefffeu) | (columns >> 1 & 0x7fff7fff7fffu);
}

/// A cluster and the lit pixels around it.
__device__ cluster_window grow_once(const cluster_window& lit, const cluster_window& cluster)
{
    const uint64_t west = grow_rows(cluster.west), east = grow_rows(cluster.east);
    return {lit.west & (west | west << 16 | west >> 16 | east << 32),
            lit.east & (east | east << 16 | east >> 16 | west >> 32)};
}

/// Grow the cluster of candidate pixel (c, r) of the middle super-pixel inside the window. Returns false if another
/// candidate reports it: the cluster has a pixel further north in this column, or in a column further east.
__device__ bool grow_cluster(const cluster_window& lit, uint32_t c, uint32_t r, cluster_window& cluster)
{
    const uint32_t start_row = 8u + r;
    cluster.west = c == 0u ? 1ull << (32u + start_row) : 0ull;
    cluster.east = c == 1u ? 1ull << start_row : 0ull;
    for (bool grown = true; grown;) {
        const cluster_window next = grow_once(lit, cluster);
        grown = next.west != cluster.west || next.east != cluster.east;
        cluster = next;
    }
    const uint64_t column = c == 0u ? cluster.west >> 32 : cluster.east & 0xffffu;
    const uint64_t further_east = c == 0u ? cluster.east : cluster.east >> 16;
    return (column >> (start_row + 1u) | further_east) == 0u;
}

__device__ cluster_sums sum_window(const cluster_window& cluster, int32_t column, int32_t row)
{
    constexpr uint64_t second = 0xffff0000u, third = 0xffff00000000u;
    const int32_t n_east = __popcll(cluster.east);
    const int32_t n = __popcll(cluster.west) + n_east;
    const int32_t columns = __popcll(cluster.west & second) + 2 * __popcll(cluster.west & third) + 3 * n_east +
                            __popcll(cluster.east & second) + 2 * __popcll(cluster.east & third);
    const int32_t rows = sum_of_rows(cluster.west) + sum_of_rows(cluster.east);
    return {n, 2 * (column - 1) * n + columns, 4 * (row - 2) * n + rows};
}

}  // namespace hlt
