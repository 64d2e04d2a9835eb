// Byte offset, size and type of every fragment of the batch, from the type and size arrays of the MFPs
// (docs/formats/mfp.md).
//
// One block per MFP. A fragment's offset is the prefix sum of the padded sizes before it. A fragment that would reach
// beyond its MFP gets size 0 and type broken_bank, which flags the event in the decoder that meets it: kernels behind
// never read out of bounds.
// Bounds: n_fragments of the row, declared by the host when it wrote the row.
#pragma once

#include "algorithms/generated/fragment_offsets.h"
#include "framework/device/raw_banks.cuh"

HLT_KERNEL(fragment_offsets)
{
    if (blockIdx.x >= p.batch->n_rows) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const hlt::mfp_row row = p.input.mfp_rows[blockIdx.x];
    const uint8_t* mfp = p.input.bytes + row.data_offset;
    const uint32_t n = row.n_fragments;
    const uint32_t align = 1u << (mfp[18] & 15u);
    const uint8_t* types = mfp + 20;
    const uint8_t* sizes = types + ((n + 3u) & ~3u);
    const uint32_t first = 20u + ((n + 3u) & ~3u) + ((2u * n + 3u) & ~3u);

    uint32_t running = first;
    for (uint32_t base = 0; base < n; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        const uint32_t size = i < n ? hlt::load_u16(sizes + 2 * i) : 0;
        const uint32_t padded = (size + align - 1u) & ~(align - 1u);
        uint32_t total;
        const uint32_t offset = running + hlt::block_exclusive_sum(padded, scratch, total);
        if (i < n) {
            const bool inside = offset + size <= row.packet_size && offset >= first;
            p.fragments.offset[row.fragment_base + i] = inside ? row.data_offset + offset : row.data_offset;
            p.fragments.size[row.fragment_base + i] = static_cast<uint16_t>(inside ? size : 0);
            p.fragments.type[row.fragment_base + i] = static_cast<uint8_t>(inside ? types[i] : hlt::broken_bank);
        }
        running += total;
    }
}
