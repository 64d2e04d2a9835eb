// Straight lines through two hits, and the hit of a module pair that lies closest to one: what seeding and forwarding of
// search by triplet have in common.
#pragma once

#include "hit.cuh"
#include "phi_bins.cuh"

namespace hlt {

constexpr uint32_t triplet_tile = 256;  // lines that are handled between two barriers
constexpr uint32_t no_hit = 0xffffffffu;

/// Added to the phi tolerance, in units of 2 pi / 2^16: phi of a hit is truncated, and a chord is shorter than its arc.
constexpr float phi_margin = 16.f;

/// Hits of one event, sorted by phi in each module pair.
struct velo_hits {
    const float* __restrict__ x;
    const float* __restrict__ y;
    const float* __restrict__ z;
    const int16_t* __restrict__ phi;
    const uint16_t* __restrict__ phi_bin_offset;
    const uint32_t* __restrict__ module_pair_offset;
};

/// Lines through hit `a` and, upstream of it, hit `b`, to be followed into a module pair. Written in two steps: first
/// the hits, then, over full vectors, what follows from them.
struct line_tile {
    uint16_t a[triplet_tile], b[triplet_tile];
    float dz[triplet_tile];  // from b to where the pair is entered
    float x[triplet_tile], y[triplet_tile], z[triplet_tile];     // of b; then x and y at z = 0
    float tx[triplet_tile], ty[triplet_tile], tz[triplet_tile];  // a - b; then slopes
    float max_scatter[triplet_tile];                             // mm^2
    int32_t first_bin[triplet_tile], last_bin[triplet_tile];     // of phi that the window touches

    __device__ void set_hits(uint32_t i, const velo_hits& hits, uint32_t hit_a, uint32_t hit_b, float step)
    {
        a[i] = static_cast<uint16_t>(hit_a);
        b[i] = static_cast<uint16_t>(hit_b);
        dz[i] = step;
        x[i] = hits.x[hit_b];
        y[i] = hits.y[hit_b];
        z[i] = hits.z[hit_b];
        tx[i] = hits.x[hit_a] - x[i];
        ty[i] = hits.y[hit_a] - y[i];
        tz[i] = hits.z[hit_a] - z[i];
    }
};

struct closest_hit {
    uint32_t hit;  // or no_hit
    float scatter;
};

/// How far a hit may be from a line: the error of the line, and the kink of scattering times the step.
struct scatter_cut {
    float distance2;          // mm^2
    float kink2;              // rad^2
    float max_phi_tolerance;  // in units of 2 pi / 2^16

    __device__ float at(float dz) const { return distance2 + kink2 * (dz * dz); }
};

/// Second step for the first n lines of the tile: line, cut and window in phi.
__device__ void follow_lines(line_tile& lines, uint32_t n, uint32_t pair, const scatter_cut& cut)
{
    float* __restrict__ x = lines.x;
    float* __restrict__ y = lines.y;
    const float* __restrict__ z = lines.z;
    const float* __restrict__ step = lines.dz;
    float* __restrict__ tx = lines.tx;
    float* __restrict__ ty = lines.ty;
    const float* __restrict__ tz = lines.tz;
    float* __restrict__ max_scatter = lines.max_scatter;
    int32_t* __restrict__ first_bin = lines.first_bin;
    int32_t* __restrict__ last_bin = lines.last_bin;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const float per_z = 1.f / tz[i];
        const float slope_x = tx[i] * per_z, slope_y = ty[i] * per_z;
        const float dz = step[i];
        const float at_x = x[i] + slope_x * dz, at_y = y[i] + slope_y * dz;
        const float scatter = cut.at(dz);
        const float r2 = at_x * at_x + at_y * at_y;
        const float wanted = sqrtf(scatter / r2) * velo_phi_units_per_radian + phi_margin;
        const int32_t tolerance = static_cast<int32_t>(min_of(wanted, cut.max_phi_tolerance));
        const int32_t phi = velo_phi(at_x, at_y) + 32768;
        first_bin[i] = phi_bin(pair, phi - tolerance);
        last_bin[i] = phi_bin(pair, phi + tolerance);
        max_scatter[i] = scatter;
        x[i] -= slope_x * z[i];
        y[i] -= slope_y * z[i];
        tx[i] = slope_x;
        ty[i] = slope_y;
    }
}

/// The hit of a pair closest to line i, of those in the bins of its window, if it is closer than `limit` (mm^2).
/// Where `taken` is not null it hides hits.
__device__ closest_hit find_closest_hit(const line_tile& lines, uint32_t i, const velo_hits& hits, uint32_t pair,
                                        const uint8_t* taken, float limit)
{
    const float x = lines.x[i], y = lines.y[i], tx = lines.tx[i], ty = lines.ty[i];
    closest_hit best{no_hit, limit};
    uint32_t hit = hits.phi_bin_offset[lines.first_bin[i]];
    uint32_t end = hits.phi_bin_offset[lines.last_bin[i] + 1];
    for (uint32_t part = lines.last_bin[i] < lines.first_bin[i] ? 2u : 1u; part > 0u; --part) {
        // A window that wraps goes up to the last hit of the pair, then on from its first.
        const uint32_t stop = part == 2u ? hits.module_pair_offset[pair + 1u] : end;
        for (; hit < stop; ++hit) {
            const float dx = hits.x[hit] - (x + tx * hits.z[hit]);
            const float dy = hits.y[hit] - (y + ty * hits.z[hit]);
            const float scatter = dx * dx + dy * dy;
            const bool closer = (scatter < best.scatter) & (taken == nullptr || taken[hit] == 0);
            best.scatter = closer ? scatter : best.scatter;
            best.hit = closer ? hit : best.hit;
        }
        hit = hits.module_pair_offset[pair];
    }
    return best;
}

__device__ uint32_t phi_distance(int16_t a, int16_t b)
{
    const int32_t difference = static_cast<int16_t>(a - b);
    return static_cast<uint32_t>(difference < 0 ? -difference : difference);
}

}  // namespace hlt
