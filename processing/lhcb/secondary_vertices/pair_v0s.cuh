// Composite candidates of two V0, for lines on a hadron that decays into both (docs/physics/secondary-vertices.md).
//
// One block per event, one thread per vertex, which tests all later ones, first to count, then to write; a prefix sum
// over the vertices gives the pairs their places. An event has few V0.
// Bounds: vertices as two_track_vertices.count; max_v0_pairs; an event with more is flagged.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/secondary_vertices/generated/secondary_vertices_pair_v0s.h"
#include "lhcb/secondary_vertices/generated/vertex_types.h"
#include "lhcb/secondary_vertices/kinematics.cuh"
#include "lhcb/secondary_vertices/vertex_fit.cuh"

namespace hlt {

using v0_parameters = secondary_vertices_pair_v0s_parameters;

constexpr float ks_mass = 497.611f;  // MeV; Particle Data Group
constexpr float lambda_mass = 1115.683f;

/// A V0 as a line of flight.
struct v0_line {
    float x, y, z, tx, ty;
    float pz, mass;
};

__device__ bool is_v0(uint32_t kind) { return (kind & (vertex_ks | vertex_lambda)) != 0; }

__device__ v0_line v0_of(const v0_parameters& p, uint32_t vertex)
{
    const float pz = p.two_track_vertices.pz[vertex];
    return {p.two_track_vertices.x[vertex],
            p.two_track_vertices.y[vertex],
            p.two_track_vertices.z[vertex],
            p.two_track_vertices.px[vertex] / pz,
            p.two_track_vertices.py[vertex] / pz,
            pz,
            (p.two_track_vertices.kind[vertex] & vertex_ks) != 0 ? ks_mass : lambda_mass};
}

__device__ bool have_common_track(const uint16_t* a, const uint16_t* b)
{
    return a[0] == b[0] || a[0] == b[1] || a[1] == b[0] || a[1] == b[1];
}

/// True if vertices a and b make a candidate; then also computes the smallest distance of their lines of flight.
__device__ bool v0s_pair(const v0_parameters& p, const v0_line& line_a, uint32_t a, uint32_t b, float& doca)
{
    const uint16_t* const tracks = p.two_track_vertices.tracks;
    if (!is_v0(p.two_track_vertices.kind[b]) || have_common_track(tracks + 2 * a, tracks + 2 * b)) return false;
    float z;
    closest_approach(line_a, v0_of(p, b), z, doca);
    return doca < p.max_doca;
}

}  // namespace hlt

HLT_KERNEL(secondary_vertices_pair_v0s)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];

    const uint32_t first_vertex = p.two_track_vertices.first(blockIdx.x);
    const uint32_t n_vertices = p.two_track_vertices.count[blockIdx.x];
    const uint32_t first_pair = p.v0_pairs.first(blockIdx.x);

    uint32_t n = 0;
    for (uint32_t base = 0; base + 1 < n_vertices; base += blockDim.x) {
        const uint32_t number = base + threadIdx.x;
        const uint32_t a = first_vertex + number;
        const bool starts = number + 1 < n_vertices && hlt::is_v0(p.two_track_vertices.kind[a]);
        const hlt::v0_line line_a = starts ? hlt::v0_of(p, a) : hlt::v0_line{};
        uint32_t mine = 0;
        float doca = 0.f;
        if (starts)
            for (uint32_t other = number + 1; other < n_vertices; ++other)
                mine += hlt::v0s_pair(p, line_a, a, first_vertex + other, doca) ? 1u : 0u;
        uint32_t total;
        uint32_t place = n + hlt::block_exclusive_sum(mine, scratch, total);
        n += total;
        const uint32_t end = hlt::min_of(place + mine, hlt::max_v0_pairs);
        for (uint32_t other = number + 1; place < end; ++other) {
            const uint32_t b = first_vertex + other;
            if (!hlt::v0s_pair(p, line_a, a, b, doca)) continue;
            const hlt::v0_line line_b = hlt::v0_of(p, b);
            p.v0_pairs.vertices[2 * (first_pair + place)] = static_cast<uint16_t>(number);
            p.v0_pairs.vertices[2 * (first_pair + place) + 1] = static_cast<uint16_t>(other);
            p.v0_pairs.mass[first_pair + place] =
                hlt::mass_of(hlt::pair_of_momenta(line_a.tx, line_a.ty, line_a.pz, line_b.tx, line_b.ty, line_b.pz),
                             line_a.mass, line_b.mass);
            p.v0_pairs.doca[first_pair + place] = doca;
            ++place;
        }
    }
    if (threadIdx.x == 0) {
        if (n > hlt::max_v0_pairs) p.events.flags[blockIdx.x] |= hlt::overflow;
        p.v0_pairs.count[blockIdx.x] = hlt::min_of(n, hlt::max_v0_pairs);
    }
}
