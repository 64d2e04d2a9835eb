// Crossings of the strips of an event, from bit maps of the cells (geometry/muon_cells.py).
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/muon/generated/muon_types.h"

namespace hlt {

/// Bit k is set if y strip first_row + k of an x strip is active; 0 for a cell that is no x strip.
__device__ uint32_t crossing_rows(const muon_cell& cell, const uint32_t* lit)
{
    if (cell.rows == 0u) return 0;
    return lit[cell.first_row / 32u] >> cell.first_row % 32u & ((1u << cell.rows) - 1u);
}

/// Mark the cells of a word of the bit map that are in a crossing; returns the number of crossings whose x strip is in
/// it. `crossed` must be 0 before; threads also mark words of other threads.
__device__ uint32_t mark_crossings(const muon_geometry& geometry, const uint32_t* lit, uint32_t word, uint32_t* crossed)
{
    uint32_t n = 0;
    for (uint32_t left = lit[word]; left != 0u; left &= left - 1u) {
        const uint32_t bit = left & (0u - left);
        const uint32_t i = word * 32u + static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1u;
        const muon_cell cell = geometry.cell[i];
        const uint32_t rows = crossing_rows(cell, lit);
        if (rows == 0u) continue;
        atomicOr(&crossed[word], bit);
        atomicOr(&crossed[cell.first_row / 32u], rows << cell.first_row % 32u);
        n += static_cast<uint32_t>(__popc(rows));
    }
    return n;
}

}  // namespace hlt
