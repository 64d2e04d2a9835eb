// Step II: only mutual links stay (D. Rohr, diploma thesis, Heidelberg, 2010, section 2.3.2).
//
// In:  tpc_clusters.up and down. Out: tpc_clusters.next, the link up if the cluster there links down to this one. One
// block per slice; threads stride over its clusters. A new column: a thread would otherwise change links that another
// one reads.
#pragma once

#include "alice/tpc/clusters/row_grid.cuh"
#include "alice/tpc/seeds/generated/tpc_clean_links.h"

HLT_KERNEL(tpc_clean_links)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);
    const uint32_t first = p.tpc_clusters.first(blockIdx.x);
    const uint32_t n_clusters = hlt::clusters_of_rows(rows);
    uint32_t row = 0;
    for (uint32_t i = threadIdx.x; i < n_clusters; i += blockDim.x) {
        while (i >= rows[row].first + rows[row].n_clusters) ++row;
        uint32_t up = p.tpc_clusters.up[first + i];
        if (up != hlt::tpc_no_cluster && p.tpc_clusters.down[first + rows[row + 2u].first + up] != i - rows[row].first)
            up = hlt::tpc_no_cluster;
        p.tpc_clusters.next[first + i] = static_cast<uint16_t>(up);
    }
}
