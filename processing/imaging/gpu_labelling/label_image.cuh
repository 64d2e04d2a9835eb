// The part of an image that a block labels, and label images as forests.
//
// A row has an even number of places for labels: its width, rounded up. The label of a pixel is a place of the same
// component that is not behind its own, so the root of a tree is the first pixel of its component in raster order. It
// is the first pixel of a run, too.
#pragma once

#include "framework/device/between_blocks.cuh"
#include "imaging/images/strip.cuh"
#include "imaging/large_images/row_ranges.cuh"

namespace hlt {

/// This bit marks the number of a component, which replaces the label of its first pixel at last.
constexpr uint32_t component_bit = 1u << 31;

/// Places for labels in a row.
__device__ uint32_t label_stride(uint32_t width) { return 2u * most_runs_of_row(width); }

/// Words of 32 pixels in a row.
__device__ uint32_t chunks_of_width(uint32_t width) { return (width + 31u) / 32u; }

/// The rows of a block, and where the pixels of the image are.
struct labelled_part {
    uint32_t event;
    row_part rows;
    image_shape shape;
    uint32_t stride;
    uint32_t threshold;
    const uint8_t* bytes;
    const uint32_t* row_data;

    /// Pixels of a row; nullptr for a missing one.
    __device__ const uint8_t* row(uint32_t y) const
    {
        const uint32_t data = row_data[y];
        return data == no_row_data ? nullptr : bytes + data;
    }
    /// The row, or nullptr behind the last row of the part.
    __device__ const uint8_t* row_or_none(uint32_t y) const { return y < rows.last ? row(y) : nullptr; }
};

/// The part of a block, from the parameters of any kernel over parts that reads the rows of images.
template <typename Parameters>
__device__ labelled_part labelled_part_of(const Parameters& p, uint32_t block, uint32_t threshold)
{
    const uint32_t event = p.event_of(block);
    const image_shape shape = p.images.shape[event];
    return {event,
            rows_of_part(block - event * p.n_parts, p.image_rows.count[event]),
            shape,
            label_stride(shape.width),
            threshold,
            p.input.bytes,
            p.image_rows.data + p.image_rows.first(event)};
}

/// The warps of a block: each takes whole rows.
__device__ uint32_t warp_of_thread() { return threadIdx.x / warp_size; }
__device__ uint32_t warps_of_block() { return (blockDim.x + warp_size - 1u) / warp_size; }

/// The root of a label.
__device__ uint32_t root_of_label(const uint32_t* labels, uint32_t a)
{
    for (uint32_t parent = load_between_blocks(labels + a); parent != a; parent = load_between_blocks(labels + a))
        a = parent;
    return a;
}

/// Join the components of two labels without a lock (D. P. Playne and K. Hawick, IEEE Trans. Parallel Distrib. Syst. 29
/// (2018) 1217, doi:10.1109/TPDS.2018.2799216; Hennequin, algorithm 7). A label that was read too early is a former
/// ancestor, and the atomic minimum finds out whether it is still a root.
__device__ void join_labels(uint32_t* labels, uint32_t a, uint32_t b)
{
    for (uint32_t parent; a != b && a != (parent = load_between_blocks(labels + a));) a = parent;
    for (uint32_t parent; a != b && b != (parent = load_between_blocks(labels + b));) b = parent;
    while (a != b) {
        if (a < b) {
            const uint32_t smaller = a;
            a = b;
            b = smaller;
        }
        const uint32_t old = lower_between_blocks(labels + a, b);
        a = old == a ? b : old;
    }
}

/// The number of the component of a label, when all have their numbers.
__device__ uint32_t component_of_label(const uint32_t* labels, uint32_t a)
{
    uint32_t label = labels[a];
    while ((label & component_bit) == 0u) label = labels[label];
    return label & ~component_bit;
}

/// Labels without features: a run begins, and two runs touch.
struct plain_labels {
    uint32_t* labels;

    /// A run of `length` pixels begins at (x, y), place k. `before` of its pixels lie in chunks to the left.
    __device__ void begin(uint32_t k, uint32_t before, uint32_t, uint32_t, uint32_t) const { labels[k] = k - before; }
    __device__ void join(uint32_t a, uint32_t b) const { join_labels(labels, a, b); }
};

}  // namespace hlt
