// A bank with pixels of a sparse image (docs/formats/pixel-lists.md). The same rules as pixel_lists.py.
#pragma once

#include "framework/device/data_parts.cuh"
#include "imaging/images/strip.cuh"
#include "imaging/sparse_images/generated/pixel_types.h"

namespace hlt {

constexpr uint32_t no_pixel = 0xffffffffu;

/// Pixels of one bank; only those of a usable bank may be read.
struct pixel_list {
    const uint8_t* pixels;
    uint32_t count;
    uint32_t total;
    uint32_t width;
    uint32_t height;
    bool usable;

    /// Row in the high, column in the low 16 bits; no_pixel outside of the image.
    __device__ uint32_t position(uint32_t i) const
    {
        const uint32_t position = load_u32(pixels + 4u * i);
        return (position & 0xffffu) < width && position >> 16 < height ? position : no_pixel;
    }
};

__device__ bool is_pixel_list(const fragment_view& bank, const mfp_row& row)
{
    return bank.type == pixel_list_type && row.version == pixel_list_version;
}

/// The list in a fragment with its type and version. An image without foreground is a part without units, of none.
__device__ pixel_list pixel_list_of(const fragment_view& bank)
{
    const data_part part = part_of(bank, image_header_bytes);
    const bool is_empty =
        bank.size == part_header_bytes + image_header_bytes && part.count == 0u && part.total == 0u && part.first == 0u;
    pixel_list list{part.units, part.count, part.total, 0, 0, false};
    if (!(part.sound || is_empty) || part.unit_bytes != pixel_bytes) return list;
    list.width = load_u32(part.own);
    list.height = load_u32(part.own + 4);
    list.usable = list.width > 0u && list.height > 0u;
    return list;
}

/// The pixels in a bank of an image of this shape with `total` pixels; none if the bank does not belong to it.
__device__ pixel_list pixels_of_bank(const raw_banks& banks, const mfp_row& row, uint32_t index,
                                     const image_shape& shape, uint32_t total)
{
    const fragment_view bank = fragment_of(banks, row, index);
    pixel_list list{nullptr, 0, 0, 0, 0, false};
    if (is_pixel_list(bank, row)) list = pixel_list_of(bank);
    list.usable = list.usable && list.width == shape.width && list.height == shape.height && list.total == total;
    if (!list.usable) list.count = 0;
    return list;
}

}  // namespace hlt
