// The SciFi hits that no long track has used, zone by zone in their order.
//
// Each zone is divided into bins of x, by which the searches find hits, and bins into cells, with one bit each.
// In:  scifi_hits.x, zone_offset, used. Out: seeding_hits.x, hit, bins, cells.
// One block per event; threads stride over the hits of a zone, a prefix sum gives the places.
// Bounds: never more hits than scifi_hits has; both have the same bounds.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/matching/generated/matching_select_seeding_hits.h"
#include "lhcb/tracks/matching/seeding_hits.cuh"

namespace hlt {

/// The hits of one event, and the destination of the kept ones.
struct hit_selection {
    event_column<const float> x;
    event_column<const uint8_t> used;
    event_column<float> kept_x;
    event_column<uint16_t> kept_hit;

    /// Store the unused hits of [begin, end) behind `n_kept` others. Returns the new number of kept hits.
    __device__ uint32_t keep(uint32_t begin, uint32_t end, uint32_t n_kept, [[maybe_unused]] uint32_t* sums) const
    {
#if HLT_ON_GPU
        for (uint32_t base = begin; base < end; base += blockDim.x) {
            const uint32_t i = base + threadIdx.x;
            const bool keeps = i < end && used[i] == 0u;
            uint32_t total = 0;
            const uint32_t place = n_kept + block_exclusive_count(keeps, sums, total);
            if (keeps) {
                kept_x[place] = x[i];
                kept_hit[place] = static_cast<uint16_t>(i);
            }
            n_kept += total;
        }
#else
        // Eight at a time: scifi_hit_padding allows loads and stores behind the last hit.
        int8x32 numbers{0, 1, 2, 3, 4, 5, 6, 7};
        numbers += static_cast<int32_t>(begin);
        for (uint32_t base = begin; base < end; base += 8u, numbers += 8) {
            uint64_t eight_used;
            std::memcpy(&eight_used, &used[base], sizeof eight_used);
            uint32_t kept = end - base < 8u ? (1u << (end - base)) - 1u : 0xffu;
            if (eight_used != 0u)
                for (uint32_t lane = 0; lane < 8u; ++lane)
                    kept &= ~(static_cast<uint32_t>((eight_used >> (8u * lane) & 0xffu) != 0u) << lane);
            float8 eight;
            load8(eight, &x[base]);
            store_packed(&kept_x[n_kept], eight, kept);
            int8x32 packed;
            store_packed(&packed, numbers, kept);
            const uint8x16 narrow = __builtin_convertvector(packed, uint8x16);
            std::memcpy(&kept_hit[n_kept], &narrow, sizeof narrow);
            n_kept += static_cast<uint32_t>(__popc(kept));
        }
#endif
        return n_kept;
    }
};

}  // namespace hlt

HLT_KERNEL(matching_select_seeding_hits)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first = p.seeding_hits.first(event);
    const uint16_t* const zone_offset = p.scifi_hits.zone_offset + event * hlt::scifi_zone_stride;
    const hlt::hit_selection selection{
        {p.scifi_hits.x, first}, {p.scifi_hits.used, first}, {p.seeding_hits.x, first}, {p.seeding_hits.hit, first}};
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];
    __shared__ uint16_t ends[hlt::n_scifi_zones + 1u];

    const bool has_hits = p.scifi_hits.count[event] != 0u;
    uint32_t n_kept = 0;
    for (uint32_t zone = 0; zone < hlt::n_scifi_zones; ++zone) {
        if (threadIdx.x == 0) ends[zone] = static_cast<uint16_t>(n_kept);
        if (has_hits) n_kept = selection.keep(zone_offset[zone], zone_offset[zone + 1u], n_kept, sums);
    }
    if (threadIdx.x == 0) ends[hlt::n_scifi_zones] = static_cast<uint16_t>(n_kept);
    hlt::block_barrier();
    hlt::fill_scifi_zones({p.seeding_hits.x, first}, ends,
                          {p.seeding_hits.bins, event * hlt::n_scifi_zones * hlt::scifi_bin_stride},
                          p.seeding_hits.cells + event * hlt::scifi_cell_stride);
}
