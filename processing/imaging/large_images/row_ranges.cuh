// The rows of a part of an image and of a group of parts, and prefix sums over the parts.
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/launch_types.h"
#include "imaging/large_images/generated/part_types.h"

namespace hlt {

/// Rows `first` to `last` - 1; a part may have none.
struct row_part {
    uint32_t first, last;
};

/// The rows of part `part` of an image with n_rows rows: all parts have the same number, or one more.
__device__ row_part rows_of_part(uint32_t part, uint32_t n_rows)
{
    return {part * n_rows / n_image_parts, (part + 1u) * n_rows / n_image_parts};
}

/// The rows of a group of parts.
__device__ row_part rows_of_group(uint32_t group, uint32_t n_rows)
{
    return {rows_of_part(group * parts_of_group, n_rows).first,
            rows_of_part((group + 1u) * parts_of_group, n_rows).first};
}

/// Write the exclusive prefix sum of `counts` over the parts of an image to `firsts`, by the threads of a block that
/// stride over the parts; `scratch` has a word for each of their warps. Returns the sum of all parts to every thread.
__device__ uint32_t sum_over_parts(const uint32_t* counts, uint32_t* firsts, uint32_t* scratch)
{
    uint32_t running = 0;
    for (uint32_t base = 0; base < n_image_parts; base += blockDim.x) {
        const uint32_t part = base + threadIdx.x;
        const uint32_t n = part < n_image_parts ? counts[part] : 0u;
        uint32_t total;
        const uint32_t first = running + block_exclusive_sum(n, scratch, total);
        running += total;
        if (part < n_image_parts) firsts[part] = first;
    }
    return running;
}

}  // namespace hlt
