// Components of pixels in groups of 2 columns and 4 rows, for the CPU (A. Hennequin, thesis, section 4.6.3).
//
// Bit 4 * column + row of a pattern is a pixel of a group. A pattern has one component or two; with two, they are its
// upper and its lower half.
#pragma once

#include "imaging/sparse_images/sorted_pixels_cpu.h"

namespace hlt {

/// The lower half of a pattern with two components, 0 for one with one.
inline uint32_t second_component(uint32_t pattern)
{
    const uint32_t low = pattern & 0x33u, high = pattern & 0xccu, rows = (pattern | pattern >> 4) & 15u;
    return low != 0u && high != 0u && (rows & 6u) != 6u ? high : 0u;
}

/// A component of a group. The order of groups as a number: an empty place lies above each column of groups.
struct pixel_group {
    static constexpr uint32_t stride = max_side / 2u;  // twice the groups of a column
    uint32_t place, pattern, first_pixel, parent;

    /// Whether it touches a later group.
    bool touches(const pixel_group& later) const
    {
        const uint32_t b = later.pattern & 15u;
        switch (later.place - place) {
        case 1u: return (pattern & 0x88u) != 0u && (later.pattern & 0x11u) != 0u;
        case stride - 1u: return (pattern & 0x10u) != 0u && (later.pattern & 0x08u) != 0u;
        case stride: return ((pattern >> 4) & (b | b << 1 | b >> 1)) != 0u;
        case stride + 1u: return (pattern & 0x80u) != 0u && (later.pattern & 0x01u) != 0u;
        default: return false;
        }
    }
};

/// Join groups that touch, also at corners. parents of pixels: the first pixel of the component in the list. `keys` has
/// room for 4 n keys. A pixel in the place of another one gets position no_pixel.
inline void label_by_super_pixels(uint32_t* positions, uint32_t n, uint32_t* parents, uint64_t* keys)
{
    uint32_t n_inside = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t x = positions[i] & 0xffffu, y = positions[i] >> 16;
        const uint32_t place = (x / 2u + 2u) * pixel_group::stride + y / 4u + 1u, bit = 4u * (x % 2u) + y % 4u;
        parents[i] = i;
        keys[n_inside] = static_cast<uint64_t>(place) << 32 | bit << 16 | i;
        n_inside += positions[i] != no_pixel ? 1u : 0u;
    }
    sort_by_high_word(keys, n_inside, keys + n);
    pixel_group* const groups = reinterpret_cast<pixel_group*>(keys + 2u * n);
    uint32_t n_groups = 0;
    for (uint32_t begin = 0, end; begin < n_inside; begin = end) {
        const uint32_t place = static_cast<uint32_t>(keys[begin] >> 32);
        uint32_t pattern = 0;
        for (end = begin; end < n_inside && keys[end] >> 32 == place; ++end) {
            const uint32_t bit = 1u << (keys[end] >> 16 & 7u);
            if ((pattern & bit) != 0u) positions[keys[end] & 0xffffu] = no_pixel;
            pattern |= bit;
        }
        const uint32_t second = second_component(pattern), first_group = n_groups;
        for (const uint32_t component : {pattern & ~second, second})
            if (component != 0u) groups[n_groups++] = {place, component, no_pixel, 0};
        for (uint32_t k = begin; k < end; ++k) {
            const uint32_t i = static_cast<uint32_t>(keys[k] & 0xffffu);
            if (positions[i] == no_pixel) continue;
            const uint32_t of = first_group + ((second >> (keys[k] >> 16 & 7u)) & 1u);
            parents[i] = of;
            groups[of].first_pixel = min_of(groups[of].first_pixel, i);
        }
    }
    const auto root_group = [=](uint32_t k) {
        while (groups[k].parent != k) k = groups[k].parent;
        return k;
    };
    uint32_t near = 0;
    for (uint32_t k = 0; k < n_groups; ++k) {
        pixel_group& own = groups[k];
        own.parent = k;
        uint32_t root = k;
        const auto join = [&](uint32_t other) {
            if (!groups[other].touches(own)) return;
            other = root_group(other);
            const uint32_t low = min_of(root, other), high = max_of(root, other);
            groups[high].parent = low;
            groups[low].first_pixel = min_of(groups[low].first_pixel, groups[high].first_pixel);
            root = low;
        };
        while (groups[near].place + pixel_group::stride + 1u < own.place) ++near;
        for (uint32_t j = near; groups[j].place + pixel_group::stride <= own.place + 1u; ++j) join(j);
        for (uint32_t j = k; j > 0u && groups[j - 1u].place + 1u >= own.place; --j) join(j - 1u);
    }
    for (uint32_t i = 0; i < n; ++i)
        if (positions[i] != no_pixel) parents[i] = groups[root_group(parents[i])].first_pixel;
}

}  // namespace hlt
