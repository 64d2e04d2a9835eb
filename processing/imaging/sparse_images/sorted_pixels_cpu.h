// Components of pixels in order of their positions, for the CPU (A. Hennequin, thesis, section 4.6.1, algorithms 24 to
// 28).
#pragma once

#include <cstring>

#include "imaging/components/union_find_cpu.h"
#include "imaging/sparse_images/pixel_list.cuh"

namespace hlt {

/// Sort keys by their high words; equal ones stay in order. `other` has room for n keys.
inline void sort_by_high_word(uint64_t* keys, uint32_t n, uint64_t* other)
{
    uint32_t sorted = 1;
    while (sorted < n && keys[sorted - 1u] >> 32 <= keys[sorted] >> 32) ++sorted;
    if (sorted >= n) return;
    for (uint32_t shift = 32; shift < 64u; shift += 8u) {  // an even number of passes ends in `keys`
        uint32_t places[256] = {};
        for (uint32_t i = 0; i < n; ++i) ++places[keys[i] >> shift & 0xffu];
        uint32_t place = 0;
        for (uint32_t& of_byte : places) {
            const uint32_t here = of_byte;
            of_byte = place;
            place += here;
        }
        for (uint32_t i = 0; i < n; ++i) other[places[keys[i] >> shift & 0xffu]++] = keys[i];
        uint64_t* const from = keys;
        keys = other;
        other = from;
    }
}

/// Join each pixel with those before it in raster order that it touches: the one to the left, and those of the row
/// above, found by a number that only grows. A pixel in the place of another one gets position no_pixel. `keys` has
/// room for 2 n keys.
inline void label_in_order(uint32_t* positions, uint32_t n, bool diagonal, uint32_t* parents, uint64_t* keys)
{
    uint32_t n_inside = 0;
    for (uint32_t i = 0; i < n; ++i) {
        parents[i] = i;
        keys[n_inside] = static_cast<uint64_t>(positions[i]) << 32 | i;
        n_inside += positions[i] != no_pixel ? 1u : 0u;
    }
    sort_by_high_word(keys, n_inside, keys + n);
    uint32_t n_places = 0;
    for (uint32_t k = 0; k < n_inside; ++k) {
        if (n_places > 0u && keys[n_places - 1u] >> 32 == keys[k] >> 32) {
            positions[static_cast<uint32_t>(keys[k])] = no_pixel;
        } else {
            keys[n_places++] = keys[k];
        }
    }
    const uint32_t reach = diagonal ? 1u : 0u;
    const auto position_of = [=](uint32_t k) { return static_cast<uint32_t>(keys[k] >> 32); };
    uint32_t near = 0;
    for (uint32_t k = 0; k < n_places; ++k) {
        const uint32_t position = position_of(k);
        uint32_t root = static_cast<uint32_t>(keys[k]);
        const auto join = [&](uint32_t other) {
            root = join_roots(parents, root_of(parents, root), root_of(parents, static_cast<uint32_t>(keys[other])));
        };
        if (k > 0u && position_of(k - 1u) + 1u == position) join(k - 1u);
        if (position < 0x10000u) continue;
        const uint32_t above = position - 0x10000u;
        while (position_of(near) + reach < above) ++near;
        for (uint32_t j = near; position_of(j) <= above + reach; ++j) join(j);
    }
}

}  // namespace hlt
