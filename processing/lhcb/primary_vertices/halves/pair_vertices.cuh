// Distances of the vertices of both halves of the VELO (docs/physics/velo-halves.md).
//
// A vertex of side C and one of side A are a pair if each is the nearest one of the other in z, and nearer than max_dz.
// Of vertices at the same distance the first one is the nearest.
// In:  half_vertices.{count, vertex, side}.
// Out: half_pairs.{count [event], vertices, dx, dy, dz, n_tracks}.
// One block per event; a thread takes a vertex of side C, a prefix sum gives the places.
// Bounds: max_pvs vertices of each half, so at most max_half_pairs pairs.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/primary_vertices/generated/pv_types.h"
#include "lhcb/primary_vertices/halves/generated/half_types.h"
#include "lhcb/primary_vertices/halves/generated/velo_halves_pair_vertices.h"

namespace hlt {

static_assert(max_half_pairs == max_pvs && max_half_vertices == n_velo_halves * max_pvs);

/// The vertex of [begin, end) that is nearest in z, `end` if there is none; `distance` is its distance, mm.
__device__ uint32_t nearest_in_z(const primary_vertex* vertices, uint32_t begin, uint32_t end, float z, float& distance)
{
    uint32_t nearest = end;
    for (uint32_t i = begin; i < end; ++i) {
        const float dz = vertices[i].z - z, apart = dz < 0.f ? -dz : dz;
        if (nearest != end && !(apart < distance)) continue;
        nearest = i;
        distance = apart;
    }
    return nearest;
}

}  // namespace hlt

HLT_KERNEL(velo_halves_pair_vertices)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t n = p.half_vertices.count[blockIdx.x];
    const hlt::primary_vertex* vertices = p.half_vertices.vertex + p.half_vertices.first(blockIdx.x);
    const uint8_t* side = p.half_vertices.side + p.half_vertices.first(blockIdx.x);
    const uint32_t first = p.half_pairs.first(blockIdx.x);
    uint32_t n_c = 0;
    while (n_c < n && side[n_c] == hlt::velo_half_c) ++n_c;

    uint32_t n_pairs = 0;
    for (uint32_t base = 0; base < n_c; base += blockDim.x) {
        const uint32_t c = base + threadIdx.x;
        uint32_t a = n;
        bool paired = false;
        if (c < n_c) {
            float distance = 0.f, back = 0.f;
            a = hlt::nearest_in_z(vertices, n_c, n, vertices[c].z, distance);
            paired = a != n && distance < p.max_dz && hlt::nearest_in_z(vertices, 0, n_c, vertices[a].z, back) == c;
        }
        uint32_t total;
        const uint32_t place = first + n_pairs + hlt::block_exclusive_count(paired, scratch, total);
        if (paired) {
            const hlt::primary_vertex of_a = vertices[a], of_c = vertices[c];
            p.half_pairs.vertices[hlt::n_velo_halves * place + hlt::velo_half_c] = static_cast<uint8_t>(c);
            p.half_pairs.vertices[hlt::n_velo_halves * place + hlt::velo_half_a] = static_cast<uint8_t>(a);
            p.half_pairs.dx[place] = of_a.x - of_c.x;
            p.half_pairs.dy[place] = of_a.y - of_c.y;
            p.half_pairs.dz[place] = of_a.z - of_c.z;
            p.half_pairs.n_tracks[place] = hlt::min_of(of_a.n_tracks, of_c.n_tracks);
        }
        n_pairs += total;
    }
    if (threadIdx.x == 0) p.half_pairs.count[blockIdx.x] = n_pairs;
}
