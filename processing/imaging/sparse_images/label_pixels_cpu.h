// Labels of pixels on the CPU, by one of four methods; then components are numbered and measured.
//
// A full row of the row table is passed to the ordered method, whose time grows with the pixels alone. So does that of
// super-pixels.
#pragma once

#include <cstring>

#include "imaging/components/measure_components_cpu.h"
#include "imaging/sparse_images/ascending_pixels_cpu.h"
#include "imaging/sparse_images/label_pixels.cuh"
#include "imaging/sparse_images/row_table_cpu.h"
#include "imaging/sparse_images/sorted_pixels_cpu.h"
#include "imaging/sparse_images/super_pixels_cpu.h"

namespace hlt {

enum class pixel_method : uint32_t { row_table, ordered, super_pixels, flood_fill };

/// Find for each pixel the first one in the list of its component, or another one before it.
inline void label_by_method(const ccl_label_pixels_parameters& p, uint32_t* positions, uint32_t n,
                            const image_shape& shape, uint32_t* parents, uint64_t* keys)
{
    const bool diagonal = p.diagonal != 0u;
    switch (static_cast<pixel_method>(p.method)) {
    case pixel_method::row_table:
        if (compares_eight_lanes && label_ascending(positions, n, diagonal, parents, reinterpret_cast<uint32_t*>(keys)))
            return;
        if (label_by_row_table(positions, n, shape, diagonal, parents, reinterpret_cast<uint32_t*>(keys))) return;
        break;
    case pixel_method::flood_fill:
        if (label_by_flood_fill(positions, n, shape.height, diagonal, parents, reinterpret_cast<uint32_t*>(keys)))
            return;
        break;
    case pixel_method::super_pixels:
        if (diagonal) return label_by_super_pixels(positions, n, parents, keys);
        break;
    case pixel_method::ordered: break;
    }
    label_in_order(positions, n, diagonal, parents, keys);
}

/// The positions of all pixels of an event, in the order of their sources; no_pixel outside of the image. Returns true
/// if there is one.
inline bool read_positions(const ccl_label_pixels_parameters& p, uint32_t event, uint32_t* positions)
{
    const event_row place = p.raw_banks.event_rows[event];
    const row_range rows = strip_rows(p.raw_banks, place.mep);
    const image_shape shape = p.images.shape[event];
    uint32_t all = 0;
    for (uint32_t k = 0; k < rows.count; ++k) {
        const pixel_list list = pixels_of_bank(p.raw_banks, p.raw_banks.mfp_rows[rows.first + k], place.index, shape,
                                               p.pixels.total[event]);
        const uint8_t* const pixels = list.pixels;
        const uint32_t width = list.width, height = list.height;
        // No branch and no member in the loop, so that compilers use vectors.
        for (size_t i = 0; i < list.count; ++i) {
            uint32_t position;
            std::memcpy(&position, pixels + 4u * i, sizeof position);
            const uint32_t outside = ((position & 0xffffu) >= width) | (position >> 16 >= height) ? no_pixel : 0u;
            positions[i] = position | outside;
            all |= outside;
        }
        positions += list.count;
    }
    return all != 0u;
}

/// Numbers of pixels that begin a component, and of those that are in the component of an earlier one.
struct numbered_pixels {
    uint32_t n_roots, n_others;
};

/// Replace parents by the numbers of components. roots: the positions of the first pixels of components; others: the
/// numbers of the pixels that follow them in the list. Both have room for n. A parent comes before its children, so one
/// ascending pass suffices.
inline numbered_pixels number_components(const uint32_t* positions, uint32_t n, uint32_t* label, uint32_t* roots,
                                         uint32_t* others)
{
    uint32_t n_roots = 0, n_others = 0, i = 0;
    // Most pixels of a sparse image are roots: a vector of them gets its numbers, then the few others one by one.
    for (; compares_eight_lanes && i + n_wide <= n; i += n_wide) {
        uint_wide position, parent;
        std::memcpy(&position, positions + i, sizeof position);
        std::memcpy(&parent, label + i, sizeof parent);
        const uint32_t used = bits_of((int_wide)(position != no_pixel));
        const uint32_t root = used & bits_of((int_wide)(parent == wide_numbers + i));
        const uint_wide numbers = numbered_wide(root, n_roots);
        std::memcpy(label + i, &numbers, sizeof numbers);
        store_packed_wide(roots + n_roots, position, root);
        n_roots += static_cast<uint32_t>(__builtin_popcount(root));
        for (uint32_t bits = ~root & all_wide; bits != 0u; bits &= bits - 1u) {
            const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(bits)), k = i + lane;
            const bool is_used = (used >> lane & 1u) != 0u;
            label[k] = is_used ? label[parent[lane]] : no_pixel;
            others[n_others] = k;
            n_others += is_used ? 1u : 0u;
        }
    }
    for (; i < n; ++i) {
        // Without branches: which pixels begin a component cannot be predicted.
        const uint32_t position = positions[i], parent = label[i];
        const bool is_used = position != no_pixel, is_root = is_used && parent == i;
        const uint32_t of_parent = label[is_used ? parent : i];
        roots[n_roots] = position;
        others[n_others] = i;
        label[i] = is_root ? n_roots : is_used ? of_parent : no_pixel;
        n_roots += is_root ? 1u : 0u;
        n_others += is_used && !is_root ? 1u : 0u;
    }
    return {n_roots, n_others};
}

template <uint32_t... lane>
struct lane_list {};
#if defined(HLT_AVX512)
constexpr lane_list<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15> lanes_of_wide;
#else
constexpr lane_list<0, 1, 2, 3, 4, 5, 6, 7> lanes_of_wide;
#endif

/// For each pixel `words` words, x and y in turn; of these the vector number `part`.
template <uint32_t words, uint32_t part, uint32_t... word>
inline __attribute__((always_inline)) uint_wide in_turn(const uint_wide& x, const uint_wide& y, lane_list<word...>)
{
    return __builtin_shufflevector(x, y, (word % 2u * n_wide + (part * n_wide + word) / words)...);
}

/// The features of n_wide components of one pixel each, given their positions.
template <typename Columns>
inline __attribute__((always_inline)) void features_of_wide(const Columns& columns, size_t first,
                                                            const uint_wide& positions)
{
    const uint_wide zeros{}, ones = zeros + 1u, x = positions & 0xffffu, y = positions >> 16;
    const auto store_sums = [first, zeros](uint32_t* sums, const uint_wide& low) {
        store_wide(sums + 2u * first, in_turn<2, 0>(low, zeros, lanes_of_wide));
        store_wide(sums + 2u * first + n_wide, in_turn<2, 1>(low, zeros, lanes_of_wide));
    };
    store_wide(columns.area + first, ones);
    component_box* const box = columns.box + first;
    constexpr uint32_t boxes = n_wide / 4u;  // in a vector
    store_wide(box, in_turn<4, 0>(x, y, lanes_of_wide));
    store_wide(box + boxes, in_turn<4, 1>(x, y, lanes_of_wide));
    store_wide(box + 2u * boxes, in_turn<4, 2>(x, y, lanes_of_wide));
    store_wide(box + 3u * boxes, in_turn<4, 3>(x, y, lanes_of_wide));
    store_sums(columns.intensity, ones);
    store_sums(columns.sum_x, x);
    store_sums(columns.sum_y, y);
    store_sums(columns.weighted_x, x);
    store_sums(columns.weighted_y, y);
}

/// The features of components of one pixel each, given their positions. All columns of a vector of pixels are written
/// before those of the next one: the caches then fetch lines of all columns at the same time, which takes two thirds
/// of the time of one column after the other if the lines lie in memory.
template <typename Columns>
inline void features_of_pixels(const Columns& columns, size_t first, const uint32_t* positions, size_t n)
{
    size_t k = 0;
    for (; compares_eight_lanes && k + n_wide <= n; k += n_wide) {
        uint_wide lanes;
        load_wide(lanes, positions + k);
        features_of_wide(columns, first + k, lanes);
    }
    for (; k < n; ++k) {
        const uint32_t x = positions[k] & 0xffffu, y = positions[k] >> 16;
        const size_t i = first + k;
        columns.area[i] = 1;
        columns.box[i] = {x, y, x, y};
        store_words(&columns.intensity[2u * i], 1);
        for (uint32_t* const sums : {columns.sum_x, columns.weighted_x}) store_words(&sums[2u * i], x);
        for (uint32_t* const sums : {columns.sum_y, columns.weighted_y}) store_words(&sums[2u * i], y);
    }
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
        if (hlt::read_positions(p, event, positions)) flags |= hlt::bad_pixels;
        hlt::label_by_method(p, positions, n, p.images.shape[event], label, keys);
    }
    uint32_t* const roots = reinterpret_cast<uint32_t*>(keys);
    uint32_t* const others = roots + n;
    const auto [n_all, n_others] = hlt::number_components(positions, n, label, roots, others);
    const uint32_t n_left_out = n - n_all - n_others;
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
