// The shape of the image of each event, from the headers of its strips.
//
// The usable strip of the lowest source id gives width, height and bits; strips that differ are flagged and not used.
// In:  the MFPs of the image sub-detectors in the MEP of the event. Out: images.shape, events.number, flags.
// One block per event; threads stride over the strips, of which an event has at most 8,192.
#pragma once

#include "imaging/images/generated/ccl_read_headers.h"
#include "imaging/images/generated/image_flags.h"
#include "imaging/images/strip.cuh"

namespace hlt {

/// Shared memory has no initial values, so the members have none.
struct strip_summary {
    uint32_t first_usable;
    uint32_t delivered;
    uint32_t flags;
};

}  // namespace hlt

HLT_KERNEL(ccl_read_headers)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ hlt::strip_summary found;
    if (threadIdx.x == 0) found = {hlt::no_part, 0, 0};
    hlt::block_barrier();

    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::strip_rows(p.raw_banks, place.mep);
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
        const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, place.index);
        if (bank.type == hlt::no_bank) continue;
        if (!hlt::is_strip(bank, row)) {
            atomicOr(&found.flags, uint32_t{hlt::bank_error});
        } else if (hlt::strip_of(bank).usable) {
            atomicMin(&found.first_usable, i);
        } else {
            atomicOr(&found.flags, uint32_t{hlt::bad_strip});
        }
    }
    hlt::block_barrier();

    hlt::image_shape shape{0, 0, 0, 0};
    if (found.first_usable != hlt::no_part) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + found.first_usable];
        const hlt::image_strip strip = hlt::strip_of(hlt::fragment_of(p.raw_banks, row, place.index));
        shape = {strip.width, strip.rows.total, strip.bits, 0};
    }
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
        const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
        const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, place.index);
        if (bank.type == hlt::no_bank || !hlt::is_strip(bank, row)) continue;
        const hlt::image_strip strip = hlt::strip_of(bank);
        if (!strip.usable) continue;
        if (hlt::belongs_to(strip, shape)) {
            atomicAdd(&found.delivered, strip.rows.count);
        } else {
            atomicOr(&found.flags, uint32_t{hlt::strip_mismatch});
        }
    }
    hlt::block_barrier();
    if (threadIdx.x != 0) return;

    uint32_t flags = found.flags;
    if (shape.width == 0u) flags |= hlt::no_image;
    shape.delivered = found.delivered;
    p.images.shape[event] = shape;
    hlt::write_event_number(p.raw_banks, rows, place.index, p.events.number + 2u * event);
    if (flags != 0u) p.events.flags[event] |= flags;
}
