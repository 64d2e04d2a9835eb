// The pixels of an image by row, for the CPU: a table with the columns and the numbers of the pixels of each row, in
// the order in which they come (A. Hennequin, thesis, section 4.6.2).
#pragma once

#include <cstring>

#include "imaging/components/union_find_cpu.h"
#include "imaging/sparse_images/pixel_list.cuh"

namespace hlt {

/// Places are those of `n_lanes` columns, which one vector compares. A row has at least as many, and all have the same.
class row_table {
  public:
    /// An empty table for an image of this height, with an empty row above and one below.
    explicit row_table(uint32_t height) : places_(min_of(n_places / (height + 2u) / n_lanes, most_vectors) * n_lanes)
    {
        std::memset(counts_, 0, (height + 2u) * sizeof *counts_);
        for (uint32_t row = 0; row < height + 2u; ++row) std::memset(columns_ + row * places_, 0xff, sizeof(lanes));
    }

    /// True if a pixel lies in the row below (x, y), at most one column away, or to its right, or if another one lies
    /// in its place. The pixel itself is in the table. May be true without.
    __attribute__((always_inline)) bool has_near(uint32_t x, uint32_t y) const
    {
        const uint32_t own = (y + 1u) * places_, below = own + places_;
        uint32_t n_below = 0, n_beside = 0, i = 0;
        do n_below |= bits_within(columns_ + below + i, x - 1u, 2);
        while (__builtin_expect((i += n_lanes) < counts_[y + 2u], 0));
        i = 0;
        do n_beside += static_cast<uint32_t>(__builtin_popcount(bits_within(columns_ + own + i, x, 1)));
        while (__builtin_expect((i += n_lanes) < counts_[y + 1u], 0));
        return n_below != 0u || n_beside > bits_of_lane;
    }

    /// Call visit(number of the pixel, distance in columns + 1, distance in rows + 1) for all pixels of the three rows
    /// around (x, y) that are at most one column away.
    template <typename Visit>
    __attribute__((always_inline)) void visit_near(uint32_t x, uint32_t y, const Visit& visit) const
    {
        for (uint32_t k = 0; k < 3u; ++k) {
            const uint32_t first = (y + k) * places_;
            for (uint32_t i = first; i < first + counts_[y + k]; ++i) {
                const uint32_t distance = columns_[i] + 1u - x;
                if (distance <= 2u) visit(uint32_t{numbers_[i]}, distance, k);
            }
        }
    }

    /// Append a pixel to its row. Returns false if the row is full.
    __attribute__((always_inline)) bool append(uint32_t x, uint32_t y, uint32_t number)
    {
        const uint32_t count = counts_[y + 1u];
        if (count == places_) return false;
        const uint32_t place = (y + 1u) * places_ + count;
        if (count != 0u && count % n_lanes == 0u) std::memset(columns_ + place, 0xff, sizeof(lanes));
        columns_[place] = static_cast<uint16_t>(x);
        numbers_[place] = static_cast<uint16_t>(number);
        counts_[y + 1u] = static_cast<uint8_t>(count + 1u);
        return true;
    }

  private:
    using lanes = uint16_t __attribute__((vector_size(32)));
    static constexpr uint32_t n_lanes = 16, most_vectors = 2;
    static constexpr uint32_t n_places = n_lanes * (max_side + 2u);

    /// A bit, or two for each lane, that is set if its column is first to first + more.
    static __attribute__((always_inline)) uint32_t bits_within(const uint16_t* columns, uint32_t first, uint16_t more)
    {
        lanes of;
        std::memcpy(&of, columns, sizeof of);
        const auto within = (of - static_cast<uint16_t>(first)) <= (lanes{} + more);
#if defined(__AVX2__)
        return static_cast<uint32_t>(__builtin_ia32_pmovmskb256((char __attribute__((vector_size(32))))within));
#else
        uint32_t bits = 0;
        for (uint32_t l = 0; l < n_lanes; ++l) bits |= (within[l] != 0 ? 1u : 0u) << l;
        return bits;
#endif
    }
#if defined(__AVX2__)
    static constexpr uint32_t bits_of_lane = 2;
#else
    static constexpr uint32_t bits_of_lane = 1;
#endif

    uint32_t places_;  // of a row
    uint8_t counts_[max_side + 2u];
    alignas(64) uint16_t columns_[n_places];  // no vector crosses a line of the cache
    uint16_t numbers_[n_places];
};

static_assert(sizeof(row_table) < 2u << 20, "it lies on the stack of a thread");
static_assert(max_pixels <= 1u << 16, "numbers have 16 bits");

/// A bit for each pixel of a small image, with an empty border around it.
class pixel_bits {
  public:
    static constexpr uint32_t n_bits = 1026u * 1026u;

    static bool has_room(const image_shape& shape)
    {
        return uint64_t{shape.width + 2u} * (shape.height + 2u) <= n_bits;
    }

    explicit pixel_bits(const image_shape& shape) : stride_(shape.width + 2u)
    {
        std::memset(bits_, 0, stride_ * (shape.height + 2u) / 8u + 2u);
    }

    /// Sets the bit of a pixel; 1 if it was set.
    uint32_t insert(uint32_t position)
    {
        const uint32_t i = place_of(position), before = bits_[i / 8u];
        bits_[i / 8u] = static_cast<uint8_t>(before | 1u << i % 8u);
        return before >> i % 8u & 1u;
    }

    /// 1 if one of the eight bits around a pixel is set, else 0; without a branch, since it cannot be predicted.
    uint32_t has_neighbour(uint32_t position) const
    {
        const uint32_t left = place_of(position) - 1u;
        const uint32_t others = three_bits(left - stride_) | three_bits(left + stride_) | (three_bits(left) & 5u);
        return (others & 7u) != 0u ? 1u : 0u;
    }

  private:
    uint32_t place_of(uint32_t position) const { return ((position >> 16) + 1u) * stride_ + (position & 0xffffu) + 1u; }

    /// The bits from i on; only the first three count.
    uint32_t three_bits(uint32_t i) const
    {
        uint16_t word;
        std::memcpy(&word, bits_ + i / 8u, sizeof word);
        return static_cast<uint32_t>(word) >> i % 8u;
    }

    uint32_t stride_;  // bits of a row
    uint8_t bits_[n_bits / 8u + 3u];
};

/// The numbers of the pixels that may touch others; returns how many. All pixels of a small image without neighbours
/// are left out, unless a pixel lies outside or in the place of another one.
inline uint32_t find_touching(const uint32_t* positions, uint32_t n, const image_shape& shape, uint32_t* numbers)
{
    uint32_t n_found = 0;
    if (pixel_bits::has_room(shape)) {
        pixel_bits bits(shape);
        uint32_t is_odd = 0;
        for (uint32_t i = 0; i < n && is_odd == 0u; ++i)
            is_odd = positions[i] == no_pixel ? 1u : bits.insert(positions[i]);
        for (uint32_t i = 0; i < n && is_odd == 0u; ++i) {
            numbers[n_found] = i;
            n_found += bits.has_neighbour(positions[i]);
        }
        if (is_odd == 0u) return n_found;
    }
    for (uint32_t i = 0; i < n; ++i) {
        numbers[n_found] = i;
        n_found += positions[i] != no_pixel ? 1u : 0u;
    }
    return n_found;
}

/// Join each pixel with those that it touches. A pixel in the place of another one before it gets position no_pixel.
/// `numbers` has room for n numbers. Returns false if a row is full. All pixels enter the table first: a vector that is
/// loaded just after one of its lanes was stored waits for the store, and then two rows are enough to see each pair
/// once.
inline bool label_by_row_table(uint32_t* positions, uint32_t n, const image_shape& shape, bool diagonal,
                               uint32_t* parents, uint32_t* numbers)
{
    const uint32_t n_touching = find_touching(positions, n, shape, numbers);
    for (uint32_t i = 0; i < n; ++i) parents[i] = i;
    row_table table(shape.height);
    for (uint32_t k = 0; k < n_touching; ++k) {
        const uint32_t position = positions[numbers[k]];
        if (!table.append(position & 0xffffu, position >> 16, numbers[k])) return false;
    }
    for (uint32_t k = 0; k < n_touching; ++k) {
        const uint32_t i = numbers[k], x = positions[i] & 0xffffu, y = positions[i] >> 16;
        if (positions[i] == no_pixel || !table.has_near(x, y)) continue;
        uint32_t root = root_of(parents, i);
        bool is_double = false;
        table.visit_near(x, y, [&](uint32_t other, uint32_t columns, uint32_t rows) {
            if (columns == 1u && rows == 1u && other < i) is_double = true;
            if (diagonal || columns == 1u || rows == 1u) root = join_roots(parents, root, root_of(parents, other));
        });
        if (is_double) positions[i] = no_pixel;
    }
    return true;
}

/// Visit the component of each pixel in turn, from neighbour to neighbour (the same thesis, section 4.2.1). `stack` has
/// room for n numbers. Otherwise as label_by_row_table.
inline bool label_by_flood_fill(uint32_t* positions, uint32_t n, uint32_t height, bool diagonal, uint32_t* parents,
                                uint32_t* stack)
{
    row_table table(height);
    for (uint32_t i = 0; i < n; ++i) {
        parents[i] = no_pixel;
        if (positions[i] != no_pixel && !table.append(positions[i] & 0xffffu, positions[i] >> 16, i)) return false;
    }
    for (uint32_t i = 0; i < n; ++i) {
        if (parents[i] != no_pixel || positions[i] == no_pixel) continue;
        parents[i] = i;
        stack[0] = i;
        for (uint32_t n_open = 1; n_open > 0u;) {
            const uint32_t own = stack[--n_open], x = positions[own] & 0xffffu, y = positions[own] >> 16;
            table.visit_near(x, y, [&](uint32_t other, uint32_t columns, uint32_t rows) {
                if (parents[other] != no_pixel || !(diagonal || columns == 1u || rows == 1u)) return;
                parents[other] = i;
                stack[n_open++] = other;
            });
        }
    }
    // All pixels of one place are in one component, so each of them is seen.
    for (uint32_t i = 0; i < n; ++i) {
        if (positions[i] == no_pixel) continue;
        bool is_double = false;
        table.visit_near(positions[i] & 0xffffu, positions[i] >> 16,
                         [&](uint32_t other, uint32_t columns, uint32_t rows) {
                             if (columns == 1u && rows == 1u && other < i) is_double = true;
                         });
        if (is_double) positions[i] = no_pixel;
    }
    return true;
}

}  // namespace hlt
