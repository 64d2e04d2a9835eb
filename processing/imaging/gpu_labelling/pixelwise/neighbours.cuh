// Labels and features pixel by pixel.
//
// The naive form joins each pixel with all of its neighbours that come earlier. That of Playne and Hawick begins with
// the label of the first neighbour, without an atomic operation, and joins only where no other pixel does it (D. P.
// Playne and K. Hawick, IEEE Trans. Parallel Distrib. Syst. 29 (2018) 1217, doi:10.1109/TPDS.2018.2799216).
#pragma once

#include "imaging/gpu_labelling/chunk_masks.cuh"
#include "imaging/gpu_labelling/label_image.cuh"
#include "imaging/gpu_labelling/run_features.cuh"

namespace hlt {

/// Whether a pixel of 1 or 8 bits is foreground; not in a missing row (nullptr), nor beyond the width.
__device__ bool is_set(const uint8_t* row, const image_shape& shape, uint32_t threshold, uint32_t x)
{
    if (row == nullptr || x >= shape.width) return false;
    return shape.bits == 1u ? (load_u32(row + x / 32u * 4u) >> x % 32u & 1u) != 0u : row[x] >= threshold;
}

/// Which neighbours of a pixel that come before it are foreground. Without `reach` corners count as background.
struct earlier_neighbours {
    bool left, above_left, above, above_right;
};

__device__ earlier_neighbours neighbours_of(const uint8_t* row, const uint8_t* row_above, const labelled_part& part,
                                            uint32_t x)
{
    const auto set = [&](const uint8_t* of, uint32_t column) { return is_set(of, part.shape, part.threshold, column); };
    return {x > 0u && set(row, x - 1u), x > 0u && set(row_above, x - 1u), set(row_above, x), set(row_above, x + 1u)};
}

/// Calls `work(k, x, y, neighbours)` for each foreground pixel of the rows `first` to `last` - 1, a warp for a row and
/// a lane for a pixel. The row above `first` counts only if `looks_above`.
template <typename Work>
__device__ void for_each_pixel(const labelled_part& part, uint32_t first, uint32_t last, bool looks_above, Work work)
{
    for (uint32_t y = first + warp_of_thread(); y < last; y += warps_of_block()) {
        const uint8_t* const row = part.row(y);
        const uint8_t* const row_above = y > first || (looks_above && y > 0u) ? part.row(y - 1u) : nullptr;
        for (uint32_t x = threadIdx.x % warp_size; row != nullptr && x < part.shape.width; x += n_warp_lanes())
            if (is_set(row, part.shape, part.threshold, x))
                work(y * part.stride + x, x, y, neighbours_of(row, row_above, part, x));
    }
}

/// Join a pixel with its neighbours in the row above, where no other pair of pixels does it.
__device__ void join_above(uint32_t* labels, uint32_t k, uint32_t stride, const earlier_neighbours& near,
                           uint32_t reach)
{
    const uint32_t above = k - stride;
    if (near.above) {
        // The left neighbour touches the same run above.
        if (near.left && (near.above_left || reach != 0u)) return;
        join_labels(labels, k, above);
    } else if (reach != 0u) {
        if (near.above_left && !near.left) join_labels(labels, k, above - 1u);
        if (near.above_right) join_labels(labels, k, above + 1u);
    }
}

}  // namespace hlt
