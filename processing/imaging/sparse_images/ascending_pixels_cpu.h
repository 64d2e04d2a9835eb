// Components of pixels that come in raster order, for the CPU: vectors compare pixels with those a few places before
// them in the list.
//
// In an image with few foreground pixels, a pixel of the row above that touches lies about as many places before as a
// row has pixels. So no table is needed, and the only branch that depends on pixels is taken for those that touch.
#pragma once

#include <cstring>

#include "framework/device/wide_lanes.h"
#include "imaging/components/union_find_cpu.h"
#include "imaging/sparse_images/pixel_list.cuh"

namespace hlt {

/// Places before a pixel that are compared, a multiple of four. Rows with twice the pixels of a row of the row table
/// reach so far; for fuller ones another method is faster.
constexpr uint32_t ascending_most_places = 64;
/// Below this number a list has no room for the places around a copy of it.
constexpr uint32_t ascending_min_pixels = 16;

/// True if each position is larger than the one before, and all are inside of the image.
inline bool are_ascending(const uint32_t* positions, size_t n)
{
    uint32_t falls = positions[n - 1u] == no_pixel ? 1u : 0u;
    for (size_t i = 1; i < n; ++i) falls |= positions[i - 1u] >= positions[i] ? 1u : 0u;
    return falls == 0u;
}

/// Join each pixel with those before it that it touches. `copy` has room for 8 n positions. Returns false, with any
/// parents, if the pixels are not in raster order or if rows have too many.
inline bool label_ascending(const uint32_t* positions, uint32_t n, bool diagonal, uint32_t* parents, uint32_t* copy)
{
    static_assert(8u * ascending_min_pixels >= ascending_min_pixels + ascending_most_places + n_wide);
    if (n < ascending_min_pixels || !are_ascending(positions, n)) return false;
    // Rows before the first and after the last one, which touch nothing: an image has at most max_side rows.
    constexpr uint32_t row_before = 0x8000u << 16, row_behind = 0xc000u << 16, two_rows = 2u << 16;
    static_assert(max_side <= 0x4000u);
    uint32_t* const own = copy + ascending_most_places;
    for (uint32_t i = 0; i < ascending_most_places; ++i) copy[i] = row_before;
    std::memcpy(own, positions, n * sizeof *own);
    for (uint32_t i = 0; i < n_wide; ++i) own[n + i] = row_behind + i * two_rows;
    for (uint32_t i = 0; i < n; ++i) parents[i] = i;

    const auto join = [=](uint32_t first, uint32_t bits, uint32_t places) {
        for (; bits != 0u; bits &= bits - 1u) {
            const uint32_t i = first + static_cast<uint32_t>(__builtin_ctz(bits));
            join_roots(parents, root_of(parents, i), root_of(parents, i - places));
        }
    };
    const auto load = [](const uint32_t* from) {
        uint_wide lanes;
        std::memcpy(&lanes, from, sizeof lanes);
        return lanes;
    };
    // Distances to pixels of the row above that touch: from `nearest` to `nearest` + `more`. No row is so wide that a
    // pixel of another row has one of them.
    const uint32_t nearest = diagonal ? 0xffffu : 0x10000u, more = diagonal ? 2u : 0u;
    for (uint32_t first = 0; first < n; first += n_wide) {
        const uint_wide pixels = load(own + first), less = pixels - nearest;
        join(first, bits_of((int_wide)(pixels - load(own + first - 1u) == 1u)), 1);
        for (uint32_t places = 1;; places += 4u) {
            const uint32_t* const before = own + first - places;
            const auto a = (int_wide)(less - load(before) <= more), b = (int_wide)(less - load(before - 1) <= more),
                       c = (int_wide)(less - load(before - 2) <= more), d = (int_wide)(less - load(before - 3) <= more);
            if (__builtin_expect(bits_of(a | b | c | d) != 0u, 0)) {
                join(first, bits_of(a), places);
                join(first, bits_of(b), places + 1u);
                join(first, bits_of(c), places + 2u);
                join(first, bits_of(d), places + 3u);
            }
            // Pixels that come still earlier lie farther away.
            if (bits_of((int_wide)(pixels - load(before - 3) <= 0x10001u)) == 0u) break;
            if (places + 3u == ascending_most_places) return false;
        }
    }
    return true;
}

}  // namespace hlt
