// Step III: start hits, the clusters with a link up and none down whose chain has min_seed clusters (D. Rohr, diploma
// thesis, Heidelberg, 2010, sections 2.3.3 and 6.2.2.9).
//
// In:  the links. Out: tpc_start_hits.cluster in the order of rows and numbers, which makes the numbers of tracklets
// the same in each run (the thesis appends by a counter, and sorts); tpc_slices.start_hits; a flag. One block per
// slice; threads stride over its clusters. Bounds: chains share no cluster, so there is a place for each; numbers of
// tracklets have 16 bits, so the first 65,535 are used.
#pragma once

#include "alice/tpc/clusters/row_grid.cuh"
#include "alice/tpc/generated/tpc_flags.h"
#include "alice/tpc/seeds/generated/tpc_find_start_hits.h"
#include "framework/device/between_blocks.cuh"

HLT_KERNEL(tpc_find_start_hits)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);
    const uint32_t first = p.tpc_clusters.first(blockIdx.x);
    const uint16_t* const next = p.tpc_clusters.next + first;
    const uint32_t n_clusters = hlt::clusters_of_rows(rows);
    uint32_t* const found = p.tpc_start_hits.cluster + p.tpc_start_hits.first(blockIdx.x);
    constexpr uint32_t most = 0xFFFFu;
    uint32_t row = 0, running = 0;
    for (uint32_t base = 0; base < n_clusters; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        bool starts = false;
        uint32_t number = 0;
        if (i < n_clusters) {
            while (i >= rows[row].first + rows[row].n_clusters) ++row;
            number = i - rows[row].first;
            const uint32_t down = p.tpc_clusters.down[first + i];
            const bool has_mutual_down =
                down != hlt::tpc_no_cluster && p.tpc_clusters.up[first + rows[row - 2u].first + down] == number;
            uint32_t length = 1;
            if (!has_mutual_down) {
                uint32_t link = next[i];
                for (uint32_t r = row + 2u; link != hlt::tpc_no_cluster && length < p.min_seed; r += 2u) {
                    ++length;
                    link = next[rows[r].first + link];
                }
            }
            starts = length >= p.min_seed;
        }
        uint32_t total;
        const uint32_t place = running + hlt::block_exclusive_count(starts, scratch, total);
        running += total;
        if (starts && place < most) found[place] = row << 16 | number;
    }
    if (threadIdx.x != 0) return;
    p.tpc_slices.start_hits[blockIdx.x] = hlt::min_of(running, most);
    if (running > most)
        hlt::set_bits_between_blocks(&p.events.flags[p.event_of(blockIdx.x)], uint32_t{hlt::too_many_tracklets});
}
