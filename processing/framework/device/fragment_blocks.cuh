// The fragment of a block of a kernel over FRAGMENTS: one MFP and one event.
#pragma once

#include "framework/device/raw_banks.cuh"

namespace hlt {

/// Fragment of a block: the row of its MFP, and its event in the batch.
struct block_fragment {
    uint32_t row;
    uint32_t event;
};

/// The fragment with this number in the batch. Fragments are numbered by rows, so the row is found by bisection: about
/// fifteen steps, which pay for fragments of many bytes. `fragment` must be below n_fragments of the batch header.
__device__ block_fragment fragment_of_block(const mfp_row* rows, uint32_t n_rows, uint32_t fragment)
{
    uint32_t first = 0, last = n_rows - 1u;
    while (first < last) {
        const uint32_t middle = first + (last - first + 1u) / 2u;
        if (rows[middle].fragment_base <= fragment) {
            first = middle;
        } else {
            last = middle - 1u;
        }
    }
    return {first, rows[first].first_event + fragment - rows[first].fragment_base};
}

}  // namespace hlt
