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

HLT_KERNEL(pv_beamline_cleanup)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint8_t kept[hlt::max_pv_seeds];

    const uint32_t n = p.pv_seeds.count[blockIdx.x];
    const hlt::primary_vertex* fitted = p.pv_seeds.fitted + p.pv_seeds.first(blockIdx.x);
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const hlt::primary_vertex mine = fitted[i];
        bool keep = mine.n_tracks > 0.f;
        for (uint32_t j = 0; j < n; ++j) {
            const hlt::primary_vertex other = fitted[j];
            if (j == i || !(other.n_tracks > 0.f)) continue;
            const bool larger = other.n_tracks > mine.n_tracks || (other.n_tracks == mine.n_tracks && j < i);
            const float dz = mine.z - other.z;
            if (larger && dz * dz < p.min_separation_chi2 * (mine.c22 + other.c22)) keep = false;
        }
        kept[i] = keep ? 1 : 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        hlt::primary_vertex* pvs = p.pvs.vertex + p.pvs.first(blockIdx.x);
        uint32_t count = 0;
        bool too_many = false;
        for (uint32_t i = 0; i < n; ++i) {
            if (!kept[i]) continue;
            if (count < hlt::max_pvs)
                pvs[count++] = fitted[i];
            else
                too_many = true;
        }
        p.pvs.count[blockIdx.x] = count;
        if (too_many) atomicOr(&p.events.flags[blockIdx.x], hlt::overflow);
    }
}
