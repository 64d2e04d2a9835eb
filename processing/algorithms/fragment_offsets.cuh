// Byte offset, size and type of every fragment of the batch, from the type and size arrays of the MFPs
// (docs/formats/mfp.md).
//
// One block per MFP; one warp works, because packing factors are small or MFPs are many. The offset of a fragment is
// the prefix sum of the padded sizes before it. Padding is at least 4 bytes, because decoders read aligned words. A
// fragment that extends beyond its MFP gets size 0 and type broken_bank; the decoder of that bank flags the event. So
// later kernels never read out of bounds. Bounds: n_fragments of the row, declared by the host when it wrote the row.
#pragma once

#include "algorithms/generated/fragment_offsets.h"
#include "framework/device/raw_banks.cuh"

HLT_KERNEL(fragment_offsets)
{
    if (blockIdx.x >= p.batch->n_rows || threadIdx.x >= hlt::warp_size) return;

    const hlt::mfp_row row = p.input.mfp_rows[blockIdx.x];
    const uint8_t* mfp = p.input.bytes + row.data_offset;
    const uint32_t n = row.n_fragments;
    const uint32_t padding = hlt::max_of(1u << (mfp[18] & 15u), 4u) - 1u;
    const uint8_t* types = mfp + 20;
    const uint8_t* sizes = types + ((n + 3u) & ~3u);
    const uint32_t first = 20u + ((n + 3u) & ~3u) + ((2u * n + 3u) & ~3u);

    const uint32_t lanes = hlt::min_of(blockDim.x, hlt::warp_size);
    uint32_t running = first;
    for (uint32_t base = 0; base < n; base += lanes) {
        const uint32_t i = base + threadIdx.x;
        const uint32_t size = i < n ? hlt::load_u16(sizes + 2u * i) : 0;
        const uint32_t padded = (size + padding) & ~padding;
        const uint32_t end = running + hlt::warp_inclusive_sum(padded);
        const uint32_t offset = end - padded;
        if (i < n) {
            // Offsets can wrap around; the comparisons use no sum that could wrap around too.
            const bool inside = offset >= first && offset <= row.packet_size && size <= row.packet_size - offset;
            p.fragments.rows[row.fragment_base + i] = {row.data_offset + (inside ? offset : 0u),
                                                       static_cast<uint16_t>(inside ? size : 0u),
                                                       static_cast<uint16_t>(inside ? types[i] : hlt::broken_bank)};
        }
        running = hlt::of_last_lane(end);
    }
}
