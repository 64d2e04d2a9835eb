// The place of each row of the image in the raw input, from the strips of the event.
//
// In:  the MFPs of the strips, images.shape. Out: image_rows.data [row], flags for rows that are missing or in several
// strips. One block per event; threads stride over the rows of a strip, then over the rows of the image.
// Bounds: image_rows.count rows, the height of the image; a strip that belongs to it has no row beyond its height.
#pragma once

#include "imaging/images/generated/ccl_assemble_rows.h"
#include "imaging/images/generated/image_flags.h"
#include "imaging/images/strip.cuh"

HLT_KERNEL(ccl_assemble_rows)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t flags;
    if (threadIdx.x == 0) flags = 0;
    hlt::block_barrier();

    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::image_shape shape = p.images.shape[event];
    const hlt::row_range strips = hlt::strip_rows(p.raw_banks, place.mep);
    const uint32_t n_rows = p.image_rows.count[event];
    uint32_t* const data = p.image_rows.data + p.image_rows.first(event);
    if (n_rows == 0u) {
        // An image of which too few rows have come.
        if (threadIdx.x == 0 && shape.width != 0u && shape.delivered < shape.height)
            p.events.flags[event] |= hlt::missing_rows;
        return;
    }
    const auto strip = [&](uint32_t i) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[strips.first + i];
        const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, place.index);
        hlt::image_strip found{};
        if (hlt::is_strip(bank, row)) found = hlt::strip_of(bank);
        found.rows.sound = found.usable && hlt::belongs_to(found, shape);
        return found.rows;
    };
    const hlt::unit_coverage seen = hlt::cover_units(strips.count, n_rows, strip, data);
    if (seen.missing) atomicOr(&flags, uint32_t{hlt::missing_rows});
    if (seen.overlapping) atomicOr(&flags, uint32_t{hlt::overlapping_strips});
    // Each thread replaces the numbers that it has read itself in cover_units.
    for (uint32_t y = threadIdx.x; y < n_rows; y += blockDim.x) {
        if (data[y] == hlt::no_part) {
            data[y] = hlt::no_row_data;
            continue;
        }
        const hlt::data_part rows = strip(data[y]);
        data[y] = static_cast<uint32_t>(rows.units - p.raw_banks.bytes) + (y - rows.first) * rows.unit_bytes;
    }
    hlt::block_barrier();
    if (threadIdx.x == 0 && flags != 0u) p.events.flags[event] |= flags;
}
