// Finds hits with at least `min_hits` hits within `coincidence_ns` from them on, and makes a window around each.
//
// One block for each sub-slice; one thread works. It reads the raw hits of the sub-slice and of the one behind it in the
// same slice. A window belongs to the sub-slice of its first hit; none begins in a margin. Bounds: sizes of fragments,
// stream_max_windows.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "stream/generated/stream_find_windows.h"
#include "stream/generated/stream_types.h"

namespace hlt {

/// The number of hits of a source in a sub-slice with times from `begin` to `end` (excluded), since its start.
__device__ uint32_t stream_hits_between(const fragment_view& bank, int32_t begin, int32_t end)
{
    uint32_t n = 0;
    for (uint32_t at = 0; at + 8 <= bank.size; at += 8) {
        const int32_t time = static_cast<int32_t>(load_u32(bank.data + at + 4));
        n += time >= begin && time < end ? 1u : 0u;
    }
    return n;
}

}  // namespace hlt

HLT_KERNEL(stream_find_windows)
{
    if (!p.takes(blockIdx.x) || threadIdx.x != 0) return;
    const hlt::event_row event = p.raw_banks.event_rows[blockIdx.x];
    uint32_t n = 0, flags = 0;
    p.events.number[blockIdx.x] = event.index;
    for (uint32_t board = hlt::stream_first_board; board <= hlt::stream_last_board; ++board) {
        const hlt::row_range rows = hlt::rows_of(p.raw_banks, event.mep, board);
        for (uint32_t i = rows.first; i < rows.first + rows.count; ++i) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[i];
            if (event.index < hlt::stream_margin_before ||
                event.index + hlt::stream_margin_behind >= row.n_fragments)
                continue;
            const hlt::fragment_view bank = hlt::fragment_of(p.raw_banks, row, event.index);
            if (hlt::fragment_of(p.raw_banks, row, event.index + 1).type == hlt::no_bank) flags |= hlt::no_neighbour;
            for (uint32_t at = 0; at + 8 <= bank.size; at += 8) {
                const uint32_t time = hlt::load_u32(bank.data + at + 4);
                if (time >= hlt::stream_sub_slice_ns) continue;
                const int32_t begin = static_cast<int32_t>(time), end = begin + static_cast<int32_t>(p.coincidence_ns);
                const int32_t length = static_cast<int32_t>(hlt::stream_sub_slice_ns);
                uint32_t found = 0;
                for (uint32_t other = hlt::stream_first_board; other <= hlt::stream_last_board; ++other) {
                    const hlt::row_range of = hlt::rows_of(p.raw_banks, event.mep, other);
                    for (uint32_t k = of.first; k < of.first + of.count; ++k) {
                        const hlt::mfp_row there = p.raw_banks.mfp_rows[k];
                        found += hlt::stream_hits_between(hlt::fragment_of(p.raw_banks, there, event.index), begin,
                                                          end < length ? end : length);
                        found += hlt::stream_hits_between(hlt::fragment_of(p.raw_banks, there, event.index + 1), 0,
                                                          end - length);
                    }
                }
                if (found < static_cast<uint32_t>(p.min_hits)) continue;
                if (n == hlt::stream_max_windows) {
                    flags |= hlt::overflow;
                    continue;
                }
                p.windows.window[p.windows.first(blockIdx.x) + n++] = {
                    begin - static_cast<int32_t>(p.before_ns), begin + static_cast<int32_t>(p.behind_ns),
                    found > static_cast<uint32_t>(p.min_hits) ? 3u : 1u, found};
            }
        }
    }
    p.windows.count[blockIdx.x] = n;
    p.events.flags[blockIdx.x] |= flags;
}
