// Ends of segments without a mutual link, by the cubes in which other kernels search them.
//
// In:  ends, clones and links of the segments. Out: tpc_tracks.free_end, cell_begins; scratch memory free_number. Ends
// of clones, ends without a direction and those beyond 640 cm are left out. The order inside a cube is not fixed. One
// block per event; threads stride over the ends. Bounds: those of the tracks.
#pragma once

#include "alice/tpc/merging/links/generated/tpc_sort_free_ends.h"
#include "alice/tpc/merging/links/links.cuh"
#include "alice/tpc/merging/links/near_cells.cuh"
#include "alice/tpc/merging/segments/sort_by_bins.cuh"

HLT_KERNEL(tpc_sort_free_ends)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t first = p.tpc_tracks.first(event), n = 2u * p.tpc_tracks.count[event];
    const hlt::tpc_ends ends{p.tpc_tracks.inner + first, p.tpc_tracks.outer + first};
    const hlt::tpc_chain chain{p.tpc_tracks.best_end + 2u * first,
                               {p.tpc_tracks.longer + first, p.tpc_tracks.shorter + first}};
    uint32_t* const begins = p.tpc_tracks.cell_begins + event * (hlt::tpc_free_cells + 1u);
    uint32_t* const number = p.tpc_tracks.free_number + 2u * first;
    const auto cell_of = [&](uint32_t i) {
        const hlt::tpc_segment_end& end = ends[i];
        if (chain.link(i) != hlt::tpc_no_end || chain.clones.is_clone(i / 2u)) return hlt::tpc_free_cells;
        if (!hlt::has_direction(end) || !hlt::is_in_a_cell(end)) return hlt::tpc_free_cells;
        return hlt::folded_cell(hlt::cell_of_axis(end.x), hlt::cell_of_axis(end.y), hlt::cell_of_axis(end.z));
    };
    hlt::sort_by_bins(n, hlt::tpc_free_cells, cell_of, begins, number, scratch);
    hlt::block_barrier();
    const uint32_t n_free = begins[hlt::tpc_free_cells];
    for (uint32_t i = threadIdx.x; i < n_free; i += blockDim.x) {
        const hlt::tpc_segment_end& end = ends[number[i]];
        p.tpc_tracks.free_end[2u * first + i] = {end.x, end.y, end.z, number[i]};
    }
}
