// The shape of each sparse image, from the headers of its lists of pixels.
//
// The usable list of the lowest source id gives width, height and the number of pixels; lists that differ are flagged
// and not used. In:  the MFPs of the image sub-detectors in the MEP of the event. Out: images.shape (delivered:
// pixels), pixels.total, events.number, flags. One block per event; threads stride over the banks, of which an event
// has at most 8,192.
#pragma once

#include "imaging/images/generated/image_flags.h"
#include "imaging/sparse_images/generated/ccl_read_pixel_headers.h"
#include "imaging/sparse_images/pixel_list.cuh"

namespace hlt {

/// Shared memory has no initial values, so the members have none.
struct list_summary {
    uint32_t first_usable;
    uint32_t delivered;
    uint32_t flags;
};

}  // namespace hlt

HLT_KERNEL(ccl_read_pixel_headers)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ hlt::list_summary found;
    if (threadIdx.x == 0) found = {hlt::no_part, 0, 0};
    hlt::block_barrier();

    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::strip_rows(p.raw_banks, place.mep);
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
        const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, place.index);
        if (bank.type == hlt::no_bank) continue;
        if (!hlt::is_pixel_list(bank, row)) {
            atomicOr(&found.flags, uint32_t{hlt::bank_error});
        } else if (hlt::pixel_list_of(bank).usable) {
            atomicMin(&found.first_usable, i);
        } else {
            atomicOr(&found.flags, uint32_t{hlt::bad_strip});
        }
    }
    hlt::block_barrier();

    hlt::image_shape shape{0, 0, 0, 0};
    uint32_t total = 0;
    if (found.first_usable != hlt::no_part) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + found.first_usable];
        const hlt::pixel_list first = hlt::pixel_list_of(hlt::fragment_of(p.raw_banks, row, place.index));
        shape = {first.width, first.height, 1, 0};
        total = first.total;
    }
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
        const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, place.index);
        if (!hlt::is_pixel_list(bank, row) || !hlt::pixel_list_of(bank).usable) continue;
        const hlt::pixel_list list = hlt::pixels_of_bank(p.raw_banks, row, place.index, shape, total);
        if (list.usable) {
            atomicAdd(&found.delivered, list.count);
        } else {
            atomicOr(&found.flags, uint32_t{hlt::strip_mismatch});
        }
    }
    hlt::block_barrier();
    if (threadIdx.x != 0) return;

    uint32_t flags = found.flags;
    if (shape.width == 0u) flags |= hlt::no_image;
    if (shape.width > hlt::max_side || shape.height > hlt::max_side) flags |= hlt::image_too_large;
    if (found.delivered < total) flags |= hlt::missing_pixels;
    if (found.delivered > total) flags |= hlt::bad_pixels;
    if (found.delivered > hlt::max_pixels) flags |= hlt::too_many_pixels;
    shape.delivered = found.delivered;
    p.images.shape[event] = shape;
    p.pixels.total[event] = total;
    hlt::write_event_number(p.raw_banks, rows, place.index, p.events.number + 2u * event);
    if (flags != 0u) p.events.flags[event] |= flags;
}
