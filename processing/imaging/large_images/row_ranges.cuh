// The rows of a part of an image.
#pragma once

#include "framework/device/platform.cuh"
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

}  // namespace hlt
