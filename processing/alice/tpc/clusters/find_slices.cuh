// The banks of each slice: sources of a slice are adjacent, because the MFPs of a MEP come in the order of sources.
//
// In:  the rows and fragments of the TPC. Out: tpc_slices.input [slice], the number of clusters and the number of the
// event, flags. One block per event; threads stride over its slices, and each finds the banks of its slice among those
// of the event. A slice takes at most tpc_max_slice_clusters, which all banks of its sources hold together.
#pragma once

#include "alice/tpc/clusters/cluster_banks.cuh"
#include "alice/tpc/clusters/generated/tpc_find_slices.h"
#include "alice/tpc/generated/tpc_flags.h"
#include "framework/generated/launch_types.h"

namespace hlt {

/// First of the rows whose source belongs to `slice` or to a later one.
__device__ uint32_t first_row_of_slice(const mfp_row* rows, const row_range& of_tpc, uint32_t slice)
{
    uint32_t first = of_tpc.first, last = of_tpc.first + of_tpc.count;
    while (first < last) {
        const uint32_t middle = first + (last - first) / 2u;
        if (tpc_slice_of(rows[middle].source_id) < slice)
            first = middle + 1u;
        else
            last = middle;
    }
    return first;
}

}  // namespace hlt

HLT_KERNEL(tpc_find_slices)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    __shared__ uint32_t flags, n_banks;
    if (threadIdx.x == 0) flags = n_banks = 0;
    hlt::block_barrier();

    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range of_tpc = hlt::rows_of(p.raw_banks, place.mep, hlt::tpc_subdetector);
    uint32_t running = 0;
    // One round more than slices: sources behind the last slice do not exist.
    for (uint32_t base = 0; base <= hlt::tpc_slices; base += blockDim.x) {
        const uint32_t slice = base + threadIdx.x;
        hlt::tpc_slice_input found{0, 0, 0, 0};
        if (slice <= hlt::tpc_slices) {
            const uint32_t first = hlt::first_row_of_slice(p.raw_banks.mfp_rows, of_tpc, slice);
            uint32_t last = slice < hlt::tpc_slices ? hlt::first_row_of_slice(p.raw_banks.mfp_rows, of_tpc, slice + 1u)
                                                    : of_tpc.first + of_tpc.count;
            for (uint32_t i = first; i < last; ++i) {
                const hlt::mfp_row row = p.raw_banks.mfp_rows[i];
                const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, place.index);
                if (bank.type != hlt::no_bank) atomicOr(&n_banks, 1u);
                if (hlt::is_bad_bank(bank, row)) atomicOr(&flags, uint32_t{hlt::bad_tpc_bank});
                const uint32_t n = hlt::clusters_of_bank(bank, row);
                if (n > hlt::tpc_max_slice_clusters - found.n_clusters) {
                    // Only with more than one MFP of a source.
                    atomicOr(&flags, uint32_t{hlt::bad_tpc_bank});
                    last = i;
                    break;
                }
                found.n_clusters += n;
            }
            found.first_row = first;
            found.n_rows = last - first;
        }
        uint32_t total;
        found.first_cluster = running + hlt::block_exclusive_sum(found.n_clusters, scratch, total);
        running += total;
        if (slice < hlt::tpc_slices) p.tpc_slices.input[event * hlt::tpc_slices + slice] = found;
    }
    hlt::block_barrier();
    if (threadIdx.x != 0) return;
    p.all_tpc_clusters.count[event] = running;
    uint32_t number[2] = {0, 0};
    if (of_tpc.count != 0u) {
        const uint8_t* const mfp = p.raw_banks.bytes + p.raw_banks.mfp_rows[of_tpc.first].data_offset;
        const uint32_t low = hlt::load_u32(mfp + 8);
        number[0] = low + place.index;
        number[1] = hlt::load_u32(mfp + 12) + (number[0] < low ? 1u : 0u);
    }
    p.events.number[2u * event] = number[0];
    p.events.number[2u * event + 1u] = number[1];
    const uint32_t all = flags | (n_banks == 0u ? uint32_t{hlt::no_tpc} : 0u);
    if (all != 0u) p.events.flags[event] |= all;
}
