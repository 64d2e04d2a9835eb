// Clusters of super-pixels in vectors: a lane for each window and for each cluster.
//
// A column has 16 bits: the pixels of four super-pixels in a vertical line, south first. A word holds the two columns
// of a super-pixel, the one of smaller x in its low half. Each candidate has a window of 3 x 4 super-pixels around it.
// A cluster that continues further east is reported by another candidate. So a cluster has pixels only in the western
// and the middle super-pixels of its window, and fits in two words.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/velo/decoding/super_pixel.cuh"

namespace hlt {

using half_wide = uint16_t __attribute__((vector_size(sizeof(uint_wide))));

/// The columns with each pixel moved one row north, or one row south.
inline __attribute__((always_inline)) uint_wide moved_north(const uint_wide& columns)
{
    return (uint_wide)((half_wide)columns << 1);
}
inline __attribute__((always_inline)) uint_wide moved_south(const uint_wide& columns)
{
    return (uint_wide)((half_wide)columns >> 1);
}
inline __attribute__((always_inline)) uint_wide with_rows_beside(const uint_wide& columns)
{
    return columns | moved_north(columns) | moved_south(columns);
}

/// The columns of four super-pixels, one in each byte, south first. The low halves of the bytes become the first
/// column.
inline __attribute__((always_inline)) uint_wide columns_of(const uint_wide& patterns)
{
    const uint_wide inner = (patterns ^ patterns >> 4) & 0x00f000f0u;  // halves to swap
    const uint_wide by_two = patterns ^ inner ^ inner << 4;
    const uint_wide outer = (by_two ^ by_two >> 8) & 0x0000ff00u;
    return by_two ^ outer ^ outer << 8;
}

/// Candidates of the super-pixel in the middle of a window, as bits of its columns.
inline __attribute__((always_inline)) uint_wide candidates_of(const uint_wide& middle, const uint_wide& east)
{
    const uint_wide further_east = middle >> 16 | east << 16;
    return middle & ~(moved_south(middle) | with_rows_beside(further_east)) & 0x0f000f00u;
}

/// The western and the middle columns of windows.
struct half_windows {
    uint_wide west, middle;
};

inline __attribute__((always_inline)) half_windows grow_once(const half_windows& lit, const half_windows& clusters)
{
    const uint_wide west = with_rows_beside(clusters.west), middle = with_rows_beside(clusters.middle);
    return {lit.west & (west | west << 16 | west >> 16 | middle << 16),
            lit.middle & (middle | middle << 16 | middle >> 16 | west >> 16)};
}

/// Grow the clusters of candidates as grow_cluster does. `beyond` holds the column east of the middle of each window,
/// in its high half. Returns the lanes whose candidate reports the cluster.
inline __attribute__((always_inline)) uint32_t grow_clusters(const half_windows& lit, const uint_wide& beyond,
                                                             const uint_wide& candidates, half_windows& clusters)
{
    clusters = grow_once(lit, {uint_wide{}, candidates});
    for (bool grown = true; grown;) {
        const half_windows next = grow_once(lit, grow_once(lit, clusters));
        grown = bits_of(((next.west ^ clusters.west) | (next.middle ^ clusters.middle)) != 0u) != 0u;
        clusters = next;
    }
    // Bits above that of a candidate are further north in its column, or further east.
    return bits_of((clusters.middle < 2u * candidates) & ((with_rows_beside(clusters.middle) & beyond) < 0x10000u));
}

/// Sums over the pixels of clusters, columns and rows counted from the corner of the window.
struct wide_sums {
    uint_wide n, column, row;
};

/// For each byte: the number of set bits, and the sum of their places.
struct byte_sums {
    uint_wide n, places;
};

inline __attribute__((always_inline)) byte_sums sum_bytes(const uint_wide& bits)
{
    const uint_wide odd = bits >> 1 & 0x55555555u;
    const uint_wide of_two = (bits & 0x55555555u) + odd, second = of_two >> 2 & 0x33333333u;
    const uint_wide of_four = (of_two & 0x33333333u) + second, upper = of_four >> 4 & 0x0f0f0f0fu;
    const uint_wide places = (odd & 0x33333333u) + (odd >> 2 & 0x33333333u) + 2u * second;
    return {(of_four & 0x0f0f0f0fu) + upper, (places & 0x0f0f0f0fu) + (places >> 4 & 0x0f0f0f0fu) + 4u * upper};
}

inline __attribute__((always_inline)) wide_sums sum_clusters(const half_windows& clusters)
{
    constexpr uint32_t even_bytes = 0x00ff00ffu;
    const byte_sums west = sum_bytes(clusters.west), middle = sum_bytes(clusters.middle);
    const uint_wide bytes = west.n + middle.n, places = west.places + middle.places;
    const uint_wide northern = bytes >> 8 & even_bytes;
    const uint_wide n = (bytes & even_bytes) + northern;  // of a first and of a second column
    const uint_wide rows = (places & even_bytes) + (places >> 8 & even_bytes) + 8u * northern;
    const uint_wide of_middle = (middle.n & even_bytes) + (middle.n >> 8 & even_bytes);
    return {(n & 0xffffu) + (n >> 16), (n >> 16) + 2u * ((of_middle & 0xffffu) + (of_middle >> 16)),
            (rows & 0xffffu) + (rows >> 16)};
}

/// Mean of up to 64 places below 16: its integer part and its fraction, as the common kernel computes them. A float
/// separates each quotient from the next integer.
struct wide_mean {
    uint_wide whole;
    float_wide fraction;

    __attribute__((always_inline)) wide_mean(const uint_wide& sum, const uint_wide& n)
    {
        const float_wide per_n = __builtin_convertvector((int_wide)n, float_wide);
        const int_wide quotient =
            __builtin_convertvector(__builtin_convertvector((int_wide)sum, float_wide) / per_n, int_wide);
        whole = (uint_wide)quotient;
        fraction = __builtin_convertvector((int_wide)(sum - whole * n), float_wide) / per_n;
    }
};

}  // namespace hlt
