// A strip of an image in a fragment (docs/formats/image-strips.md). The same rules as strips.py.
#pragma once

#include "framework/device/data_parts.cuh"
#include "imaging/images/generated/image_types.h"

namespace hlt {

constexpr uint32_t no_row_data = 0xffffffffu;

/// One strip; only a usable one has rows.
struct image_strip {
    data_part rows;
    uint32_t width;
    uint32_t bits;
    bool usable;
};

__device__ uint64_t image_row_bytes(uint32_t width, uint32_t bits)
{
    return (static_cast<uint64_t>(width) * bits + 31u) / 32u * 4u;
}

/// The MFPs of the strips of an event: those of all image sub-detectors, which are adjacent.
__device__ row_range strip_rows(const raw_banks& banks, uint32_t mep)
{
    const row_range first = rows_of(banks, mep, first_image_subdetector);
    const row_range last = rows_of(banks, mep, first_image_subdetector + n_image_subdetectors - 1u);
    return {first.first, last.first + last.count - first.first};
}

/// Write low and high word of the number of an event in the run, given its MFPs and its index in them; 0 without MFPs.
__device__ void write_event_number(const raw_banks& banks, const row_range& rows, uint32_t index, uint32_t* number)
{
    number[0] = 0;
    number[1] = 0;
    if (rows.count == 0u) return;
    const uint8_t* const mfp = banks.bytes + banks.mfp_rows[rows.first].data_offset;
    const uint32_t low = load_u32(mfp + 8);
    number[0] = low + index;
    number[1] = load_u32(mfp + 12) + (number[0] < low ? 1u : 0u);
}

/// Whether a fragment has the type and the version of a strip.
__device__ bool is_strip(const fragment_view& bank, const mfp_row& row)
{
    return bank.type == strip_type && row.version == strip_version;
}

/// The strip in a fragment with its type and version.
__device__ image_strip strip_of(const fragment_view& bank)
{
    image_strip strip{part_of(bank, image_header_bytes), 0, 0, false};
    if (!strip.rows.sound) return strip;
    strip.width = load_u32(strip.rows.own);
    strip.bits = load_u32(strip.rows.own + 4);
    strip.usable = strip.width > 0u && (strip.bits == 1u || strip.bits == 8u) &&
                   strip.rows.unit_bytes == image_row_bytes(strip.width, strip.bits);
    return strip;
}

/// Runs that a row of pixels can have.
__device__ uint32_t most_runs_of_row(uint32_t width) { return (width + 1u) / 2u; }

/// Runs that an image can have.
constexpr uint32_t most_runs_of_image = max_side / 2u * max_side;

/// Whether an image is small enough to be labelled.
__device__ bool fits(const image_shape& shape, uint32_t max_pixels)
{
    return shape.width <= max_side && shape.height <= max_side && shape.width * shape.height <= max_pixels;
}

/// Whether a usable strip belongs to an image of this shape.
__device__ bool belongs_to(const image_strip& strip, const image_shape& shape)
{
    return strip.width == shape.width && strip.rows.total == shape.height && strip.bits == shape.bits;
}

}  // namespace hlt
