// Adds the size of a fragment to its event. One block per fragment; one thread works.
#pragma once

#include "framework/device/between_blocks.cuh"
#include "framework/device/fragment_blocks.cuh"
#include "parts/generated/parts_count_fragments.h"

HLT_KERNEL(parts_count_fragments)
{
    if (!p.takes(blockIdx.x) || threadIdx.x != 0) return;
    const hlt::block_fragment at = hlt::fragment_of_block(p.input.mfp_rows, p.batch->n_rows, blockIdx.x);
    hlt::add_between_blocks(&p.events.fragment_bytes[at.event], uint32_t{p.fragments.rows[blockIdx.x].size});
}
