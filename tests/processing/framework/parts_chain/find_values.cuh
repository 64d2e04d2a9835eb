// Bytes of one slice that are not below a threshold, in their order. Slice k has the bytes k, k + n_slices, ... of the
// bank of the first source. One block per slice; one thread works. Bounds: max_in_slice; a slice that has more flags
// its event, which other slices may do at the same time.
#pragma once

#include "framework/device/between_blocks.cuh"
#include "framework/device/raw_banks.cuh"
#include "parts/generated/parts_find_values.h"
#include "parts/generated/slice_types.h"

HLT_KERNEL(parts_find_values)
{
    if (!p.takes(blockIdx.x) || threadIdx.x != 0) return;
    const uint32_t event = p.event_of(blockIdx.x), slice = blockIdx.x - event * p.n_parts;
    const hlt::event_row row = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::rows_of(p.raw_banks, row.mep, hlt::first_board);
    uint32_t n = 0, sum = 0;
    if (rows.count > 0) {
        const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, p.raw_banks.mfp_rows[rows.first], row.index);
        uint8_t* const values = p.slices.values + p.slices.first(blockIdx.x);
        for (uint32_t at = slice; at < bank.size; at += p.n_parts) {
            if (bank.data[at] < p.threshold) continue;
            if (n < hlt::max_in_slice) values[n] = bank.data[at];
            sum += bank.data[at];
            ++n;
        }
    }
    p.slices.count[blockIdx.x] = hlt::min_of(n, hlt::max_in_slice);
    if (n > hlt::max_in_slice) hlt::set_bits_between_blocks(&p.events.flags[event], hlt::full_slice);
    hlt::add_between_blocks(&p.events.charge[event], sum);
}
