// Primary vertices: the fitted seeds, except seeds that are part of a larger neighbour
// (docs/physics/primary-vertices.md, step 7).
//
// One block per event; a thread compares a vertex with all others. A vertex is dropped if another one lies within
// dz^2 / (C22 + C22') < min_separation_chi2 and has more tracks, or as many tracks and a smaller z. Kept vertices are
// in the order of z of their seeds.
// Bounds: max_pv_seeds candidates; max_pvs vertices: further vertices, at larger z, are dropped and set the overflow
// flag.
#pragma once

#include "lhcb/primary_vertices/generated/pv_beamline_cleanup.h"
#include "lhcb/primary_vertices/tracks.cuh"

namespace hlt {

/// Mark the vertices that are not part of a larger one. The threads of the block call it together, a barrier behind it.
__device__ void pv_mark_kept(const primary_vertex* fitted, uint32_t n, float min_separation_chi2, uint8_t* kept)
{
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const primary_vertex mine = fitted[i];
        bool keep = mine.n_tracks > 0.f;
        for (uint32_t j = 0; j < n; ++j) {
            const primary_vertex other = fitted[j];
            if (j == i || !(other.n_tracks > 0.f)) continue;
            const bool larger = other.n_tracks > mine.n_tracks || (other.n_tracks == mine.n_tracks && j < i);
            const float dz = mine.z - other.z;
            if (larger && dz * dz < min_separation_chi2 * (mine.c22 + other.c22)) keep = false;
        }
        kept[i] = keep ? 1 : 0;
    }
}

/// Copy the kept vertices, at most max_pvs; one thread calls it. Returns their number; `too_many` if there are more.
__device__ uint32_t pv_copy_kept(const primary_vertex* fitted, uint32_t n, const uint8_t* kept, primary_vertex* pvs,
                                 bool& too_many)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if (!kept[i]) continue;
        if (count < max_pvs)
            pvs[count++] = fitted[i];
        else
            too_many = true;
    }
    return count;
}

}  // namespace hlt

HLT_KERNEL(pv_beamline_cleanup)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint8_t kept[hlt::max_pv_seeds];

    const uint32_t n = p.pv_seeds.count[blockIdx.x];
    const hlt::primary_vertex* fitted = p.pv_seeds.fitted + p.pv_seeds.first(blockIdx.x);
    hlt::pv_mark_kept(fitted, n, p.min_separation_chi2, kept);
    __syncthreads();
    if (threadIdx.x == 0) {
        bool too_many = false;
        p.pvs.count[blockIdx.x] = hlt::pv_copy_kept(fitted, n, kept, p.pvs.vertex + p.pvs.first(blockIdx.x), too_many);
        if (too_many) atomicOr(&p.events.flags[blockIdx.x], hlt::overflow);
    }
}
