// Global event cut: an event whose UT, SciFi and VELO banks announce more clusters than the limits is not reconstructed
// (docs/physics/scifi.md).
//
// The first kernel over events. The kernels that size the buffers of each detector give flagged events no places, so
// nothing of them is decoded. The event is kept.
// In:  the fragments of the rows of UT and SciFi: their sizes, and the counts in the headers of UT banks; with a limit
// on
//      VELO clusters also those of the VELO, and with super-pixels their words.
// Out: events.{ut_clusters, scifi_clusters, flags}. One block per event, threads stride over the rows.
// Bounds: a fragment has less than 2^15 clusters and a MEP at most 2^13 rows of each detector, so the sums fit in 32
// bits.
#pragma once

#include "framework/generated/launch_types.h"
#include "lhcb/raw_data/announced_clusters.cuh"
#include "lhcb/raw_data/generated/flags.h"
#include "lhcb/raw_data/generated/global_event_cut.h"

HLT_KERNEL(global_event_cut)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const hlt::event_row place = p.raw_banks.event_rows[event];
    uint32_t of_ut = 0, of_scifi = 0, of_velo = 0;
    const bool count_padding = p.count_padding != 0u;
    const auto add_rows = [&](uint32_t subdetector) {
        const hlt::row_range rows = hlt::rows_of(p.raw_banks, place.mep, subdetector);
        for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
            const hlt::fragment_view fragment = hlt::fragment_of(p.raw_banks, row, place.index);
            of_ut += hlt::announced_ut_clusters(fragment, row.version);
            of_scifi += hlt::announced_scifi_clusters(fragment, count_padding);
        }
    };
    constexpr uint32_t no_limit = ~0u;
    if (p.max_velo_clusters != no_limit) {
        const hlt::row_range rows = hlt::velo_rows_of(p.raw_banks, place.mep);
        for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x) {
            const hlt::mfp_row row = p.raw_banks.mfp_rows[rows.first + i];
            of_velo += hlt::announced_velo_clusters(p.raw_banks, row, place.index);
        }
    }
    add_rows(hlt::ut_a);
    add_rows(hlt::ut_c);
    add_rows(hlt::scifi_a);
    add_rows(hlt::scifi_c);
    uint32_t n_ut, n_scifi, n_velo;
    hlt::block_exclusive_sum(of_ut, scratch, n_ut);
    hlt::block_exclusive_sum(of_scifi, scratch, n_scifi);
    hlt::block_exclusive_sum(of_velo, scratch, n_velo);
    if (threadIdx.x != 0) return;
    p.events.ut_clusters[event] = n_ut;
    p.events.scifi_clusters[event] = n_scifi;
    if (n_ut > p.max_ut_clusters || n_scifi > p.max_scifi_clusters || n_ut + n_scifi > p.max_clusters ||
        n_velo > p.max_velo_clusters)
        p.events.flags[event] |= hlt::global_event_cut;
}
