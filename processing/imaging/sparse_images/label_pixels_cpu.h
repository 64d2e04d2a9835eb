// Labels of pixels on the CPU, by one of four methods; then components are numbered and measured.
//
// A full row of the row table is passed to the ordered method, whose time grows with the pixels alone. So does that of
// super-pixels.
#pragma once

#include <cstring>

#include "imaging/sparse_images/label_pixels.cuh"
#include "imaging/sparse_images/row_table_cpu.h"
#include "imaging/sparse_images/sorted_pixels_cpu.h"
#include "imaging/sparse_images/super_pixels_cpu.h"

namespace hlt {

enum class pixel_method : uint32_t { row_table, ordered, super_pixels, flood_fill };

/// Find for each pixel the first one in the list of its component, or another one before it.
inline void label_by_method(const ccl_label_pixels_parameters& p, uint32_t* positions, uint32_t n, uint32_t height,
                            uint32_t* parents, uint64_t* keys)
{
    const bool diagonal = p.diagonal != 0u;
    switch (static_cast<pixel_method>(p.method)) {
    case pixel_method::row_table:
        if (label_by_row_table(positions, n, height, diagonal, parents)) return;
        break;
    case pixel_method::flood_fill:
        if (label_by_flood_fill(positions, n, height, diagonal, parents, reinterpret_cast<uint32_t*>(keys))) return;
        break;
    case pixel_method::super_pixels:
        if (diagonal) return label_by_super_pixels(positions, n, parents, keys);
        break;
    case pixel_method::ordered: break;
    }
    label_in_order(positions, n, diagonal, parents, keys);
}

/// The features of components of one pixel each, given their positions.
template <typename Columns>
inline void features_of_pixels(const Columns& columns, uint32_t first, const uint32_t* positions, uint32_t n)
{
    const auto fill = [=](uint32_t* words, auto value) {
        for (uint32_t k = 0; k < n; ++k) {
            const uint64_t sum = value(positions[k]);
            std::memcpy(words + 2u * (first + k), &sum, sizeof sum);
        }
    };
    const auto column = [](uint32_t position) { return position & 0xffffu; };
    const auto row = [](uint32_t position) { return position >> 16; };
    for (uint32_t k = 0; k < n; ++k) columns.area[first + k] = 1;
    for (uint32_t k = 0; k < n; ++k) {
        const uint32_t x = column(positions[k]), y = row(positions[k]);
        columns.box[first + k] = {x, y, x, y};
    }
    fill(columns.sum_x, column);
    fill(columns.sum_y, row);
    fill(columns.intensity, [](uint32_t) { return 1u; });
    fill(columns.weighted_x, column);
    fill(columns.weighted_y, row);
}

}  // namespace hlt

HLT_CPU_FORM(ccl_label_pixels)
{
    if (!p.takes(event)) return;

    const uint32_t n = p.pixels.count[event], first = p.pixels.first(event);
    uint32_t* const positions = p.pixels.position + first;
    uint32_t* const label = p.pixels.label + first;
    uint64_t* const keys = p.scratch.keys + 4u * first;
    uint32_t flags = 0;
    if (n != 0u) {
        if (hlt::gather_pixels(p, event, positions)) flags |= hlt::bad_pixels;
        hlt::label_by_method(p, positions, n, p.images.shape[event].height, label, keys);
    }
    // A parent comes before its children, so one ascending pass replaces all parents by the numbers of components.
    uint32_t* const roots = reinterpret_cast<uint32_t*>(keys);
    uint32_t* const others = roots + n;
    uint32_t n_all = 0, n_others = 0, n_left_out = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if (positions[i] == hlt::no_pixel) {
            label[i] = hlt::no_pixel;
            ++n_left_out;
            continue;
        }
        const uint32_t parent = label[i];
        if (__builtin_expect(parent == i, 1)) {
            roots[n_all] = positions[i];
            label[i] = n_all++;
        } else {
            others[n_others++] = i;
            label[i] = label[parent];
        }
    }
    const uint32_t n_components = hlt::min_of(n_all, p.components.bound[event]);
    const uint32_t first_component = p.components.first(event);
    hlt::features_of_pixels(p.components, first_component, roots, n_components);
    for (uint32_t k = 0; k < n_others; ++k) {
        const uint32_t i = others[k], x = positions[i] & 0xffffu, y = positions[i] >> 16;
        if (label[i] >= n_components) continue;
        const hlt::image_run span{static_cast<uint16_t>(x), static_cast<uint16_t>(x + 1u)};
        hlt::add_run(p.components, first_component + label[i], span, y, {1, x, y, 1, x, y});
    }
    p.all_components.count[event] = n_all;
    p.components.count[event] = n_components;
    if (n_left_out != 0u) flags |= hlt::bad_pixels;
    if (n_all > p.components.bound[event]) flags |= hlt::too_many_components;
    if (flags != 0u) p.events.flags[event] |= flags;
}
