// Upper bound of the clusters of each event, before the decoding.
//
// A retina bank has at most as many clusters as words. A super-pixel has at most as many clusters as its own pattern
// has candidates, because its neighbours can only remove candidates. A malformed bank flags the event and gives no
// clusters. Skipped events (skipped_events.cuh) are not read.
// In:  the fragments of the VELO rows; events.flags.
// Out: velo_clusters.bound, velo_clusters.super_pixel_bound [event]; events.flags.
// One block per event; threads stride over its banks, and the lanes of a warp share the words of their banks.
// Bounds: a fragment has less than 2^14 words, a super-pixel at most 2 candidates and a MEP at most 2^12 VELO rows, so
// the sums fit in 32 bits; velo_hit_offsets flags events that do not fit in the buffers.
#pragma once

#include "framework/device/warp_runs.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/raw_data/skipped_events.cuh"
#include "lhcb/velo/decoding/bank.cuh"
#include "lhcb/velo/decoding/generated/velo_estimate_input_size.h"
#include "lhcb/velo/decoding/super_pixel.cuh"

namespace hlt {

/// Bound of a retina bank. If no word fits, the count is checked here, because no decoder reads a bank without
/// clusters.
__device__ uint32_t max_clusters_of(const velo_bank& bank, bool& broken)
{
    return bank.max_words != 0u ? bank.max_words : bank.count_words(broken);
}

}  // namespace hlt

HLT_KERNEL(velo_estimate_input_size)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    if (hlt::is_skipped(p.events.flags[event])) {
        if (threadIdx.x == 0) p.velo_clusters.bound[event] = p.velo_clusters.super_pixel_bound[event] = 0;
        return;
    }
    __shared__ uint32_t sums[3];  // words of retina banks, candidates of super-pixels, flag of a broken bank
    __shared__ hlt::warp_runs<hlt::velo_words> runs[hlt::max_block_size / hlt::warp_size];
    for (uint32_t i = threadIdx.x; i < 3u; i += blockDim.x) sums[i] = 0;
    __syncthreads();

    const hlt::event_row place = p.raw_banks.event_rows[event];
    const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);
    uint32_t retina = 0, candidates = 0, broken_banks = 0;
    for (uint32_t base = 0; base < rows.count; base += blockDim.x) {
        hlt::velo_words words{};
        uint32_t n_words = 0;
        if (base + threadIdx.x < rows.count) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + base + threadIdx.x];
            const hlt::velo_bank bank = hlt::velo_bank_of(hlt::fragment_of(p.raw_banks, row, place.index), row);
            bool broken = bank.kind == hlt::velo_bank_kind::broken;
            if (bank.kind == hlt::velo_bank_kind::retina) retina += hlt::max_clusters_of(bank, broken);
            if (bank.kind == hlt::velo_bank_kind::super_pixels) n_words = bank.count_words(broken);
            if (broken) broken_banks = 1;
            words = bank.words(p.raw_banks);
        }
        hlt::share_runs(runs[threadIdx.x / hlt::warp_size], n_words, words, [&](const hlt::velo_words& of, uint32_t j) {
            const uint32_t pattern = hlt::super_pixel{of.word(p.raw_banks, j)}.pattern();
            candidates += static_cast<uint32_t>(__popc(hlt::candidates_of_pattern(pattern)));
        });
    }
    atomicAdd(&sums[0], retina);
    atomicAdd(&sums[1], candidates);
    atomicOr(&sums[2], broken_banks);
    __syncthreads();
    if (threadIdx.x == 0) {
        p.velo_clusters.bound[event] = sums[0] + sums[1];
        p.velo_clusters.super_pixel_bound[event] = sums[1];
        if (sums[2] != 0u) p.events.flags[event] |= hlt::bank_error;
    }
}
