// Row and place of each cluster by its number in the event, for kernels that no longer know the grid.
//
// In:  the grid of a slice. Out: tpc_event_clusters.place and row. One block per slice; threads stride over the
// clusters of a row. Clusters that are not in the grid have no place; no track has them.
#pragma once

#include "alice/tpc/clusters/row_grid.cuh"
#include "alice/tpc/merging/segments/generated/tpc_keep_places.h"

HLT_KERNEL(tpc_keep_places)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ hlt::tpc_row rows[hlt::tpc_rows];
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::tabulate_rows(p.tpc_slices.row_counts + blockIdx.x * hlt::tpc_rows,
                       p.tpc_slices.boxes + blockIdx.x * hlt::tpc_chambers, rows, scratch);
    const uint32_t first = p.tpc_clusters.first(blockIdx.x);
    const uint32_t* const inputs = p.tpc_clusters.inputs + first;
    const uint32_t* const places = p.tpc_clusters.places + first;
    const uint32_t of_event = p.tpc_event_clusters.first(p.event_of(blockIdx.x));
    for (uint32_t row = 0; row < hlt::tpc_rows; ++row) {
        const uint32_t begin = rows[row].first;
        for (uint32_t i = threadIdx.x; i < rows[row].n_clusters; i += blockDim.x) {
            const uint32_t to = of_event + inputs[begin + i];
            p.tpc_event_clusters.place[to] = places[begin + i];
            p.tpc_event_clusters.row[to] = static_cast<uint8_t>(row);
        }
    }
}
