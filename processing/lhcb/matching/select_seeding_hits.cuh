// The SciFi hits that no long track has used, zone by zone in their order.
//
// Each zone is cut into bins of x, where the searches look hits up.
// In:  scifi_hits.x, zone_offset, used. Out: seeding_hits.x, hit, zone_offset, bins.
// One block per event; threads stride over the hits of a zone, a prefix sum gives the places.
// Bounds: at most as many hits as scifi_hits has, which give their places to both.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/matching/generated/matching_select_seeding_hits.h"
#include "lhcb/matching/seeding_hits.cuh"

HLT_KERNEL(matching_select_seeding_hits)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first = p.scifi_hits.first(event);
    const uint16_t* zone_offset = p.scifi_hits.zone_offset + event * hlt::scifi_zone_stride;
    uint16_t* kept_offset = p.seeding_hits.zone_offset + event * hlt::scifi_zone_stride;
    const float* x = p.scifi_hits.x + first;
    const uint8_t* used = p.scifi_hits.used + first;
    float* kept_x = p.seeding_hits.x + first;
    uint16_t* kept_hit = p.seeding_hits.hit + first;
    __shared__ uint32_t sums[hlt::max_block_size / hlt::warp_size];

    uint32_t n_kept = 0;
    const uint32_t n_hits = p.scifi_hits.count[event];
    for (uint32_t zone = 0; zone < hlt::n_scifi_zones && n_hits != 0u; ++zone) {
        if (threadIdx.x == 0) kept_offset[zone] = static_cast<uint16_t>(n_kept);
        const uint32_t end = zone_offset[zone + 1u];
        for (uint32_t base = zone_offset[zone]; base < end; base += blockDim.x) {
            const uint32_t i = base + threadIdx.x;
            const bool keeps = i < end && used[i] == 0u;
            uint32_t total = 0;
            const uint32_t place = n_kept + hlt::block_exclusive_count(keeps, sums, total);
            if (keeps) {
                kept_x[place] = x[i];
                kept_hit[place] = static_cast<uint16_t>(i);
            }
            n_kept += total;
        }
    }
    const uint32_t zones_done = n_hits == 0u ? 0u : hlt::n_scifi_zones;
    for (uint32_t zone = zones_done + threadIdx.x; zone < hlt::scifi_zone_stride; zone += blockDim.x)
        kept_offset[zone] = static_cast<uint16_t>(n_kept);
    uint16_t* bins = p.seeding_hits.bins + event * hlt::seeding_bin_stride;
    hlt::zero_words(bins, hlt::seeding_bin_stride / 2u);
    hlt::block_barrier();
    // The last hit of a bin says where the next bin begins; behind empty bins that is carried on.
    for (uint32_t zone = 0; zone < hlt::n_scifi_zones; ++zone) {
        const uint32_t end = kept_offset[zone + 1u];
        uint16_t* of_zone = bins + zone * hlt::n_seeding_bins;
        for (uint32_t i = kept_offset[zone] + threadIdx.x; i < end; i += blockDim.x) {
            const uint32_t next = hlt::seeding_bin_of(kept_x[i]) + 1u;
            const bool is_last = i + 1u == end || hlt::seeding_bin_of(kept_x[i + 1u]) >= next;
            if (is_last && next < hlt::n_seeding_bins) of_zone[next] = static_cast<uint16_t>(i + 1u);
        }
    }
    hlt::block_barrier();
    for (uint32_t zone = threadIdx.x; zone < hlt::n_scifi_zones; zone += blockDim.x) {
        uint16_t* of_zone = bins + zone * hlt::n_seeding_bins;
        uint32_t begin = kept_offset[zone];
        for (uint32_t bin = 0; bin < hlt::n_seeding_bins; ++bin) {
            begin = hlt::max_of(begin, static_cast<uint32_t>(of_zone[bin]));
            of_zone[bin] = static_cast<uint16_t>(begin);
        }
    }
    if (threadIdx.x == 0) bins[hlt::n_scifi_zones * hlt::n_seeding_bins] = static_cast<uint16_t>(n_kept);
}
