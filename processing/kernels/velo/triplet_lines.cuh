// Straight lines through two hits, and the hit of a module pair that lies closest to one: what seeding and forwarding of
// search by triplet have in common.
#pragma once

#include "hit.cuh"
#include "phi_bins.cuh"

namespace hlt {

constexpr uint32_t triplet_tile = 256;  // lines that are handled between two barriers
constexpr uint32_t no_hit = 0xffffffffu;

/// Hits of one event, sorted by phi in each module pair.
struct velo_hits {
    const float* __restrict__ x;
    const float* __restrict__ y;
    const float* __restrict__ z;
    const int16_t* __restrict__ phi;
    const uint16_t* __restrict__ phi_bin_offset;
    const uint32_t* __restrict__ module_pair_offset;
};

/// Lines through hit `a` and, upstream of it, hit `b`, to be followed by `dz` from `b` into the next pair.
struct line_tile {
    uint32_t a[triplet_tile];
    uint32_t b[triplet_tile];
    float dz[triplet_tile];
    float x[triplet_tile], y[triplet_tile], z[triplet_tile];  // of b
    float tx[triplet_tile], ty[triplet_tile];
    float max_scatter[triplet_tile];  // mm^2
    int32_t phi[triplet_tile];        // where the line crosses the pair, int16
};

struct closest_hit {
    uint32_t hit;  // or no_hit
    float scatter;
};

/// Fill the lines from a, b and dz. A hit may be off by the cut on straightness plus the kink of scattering over dz.
__device__ void set_lines(line_tile& lines, const velo_hits& hits, uint32_t n, float max_scatter, float max_kink2)
{
    const uint32_t* __restrict__ a = lines.a;
    const uint32_t* __restrict__ b = lines.b;
    const float* __restrict__ step = lines.dz;
    float* __restrict__ x = lines.x;
    float* __restrict__ y = lines.y;
    float* __restrict__ z = lines.z;
    float* __restrict__ tx = lines.tx;
    float* __restrict__ ty = lines.ty;
    float* __restrict__ cut = lines.max_scatter;
    int32_t* __restrict__ phi = lines.phi;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const float xb = hits.x[b[i]], yb = hits.y[b[i]], zb = hits.z[b[i]];
        const float per_dz = 1.f / (hits.z[a[i]] - zb);
        const float slope_x = (hits.x[a[i]] - xb) * per_dz, slope_y = (hits.y[a[i]] - yb) * per_dz;
        const float dz = step[i];
        x[i] = xb;
        y[i] = yb;
        z[i] = zb;
        tx[i] = slope_x;
        ty[i] = slope_y;
        cut[i] = max_scatter + max_kink2 * (dz * dz);
        phi[i] = velo_phi(xb + slope_x * dz, yb + slope_y * dz);
    }
}

__device__ uint32_t phi_distance(int16_t a, int16_t b)
{
    const int32_t difference = static_cast<int16_t>(a - b);
    return static_cast<uint32_t>(difference < 0 ? -difference : difference);
}

/// Squared distance (mm^2) of a hit from line i.
__device__ float scatter_of(const line_tile& lines, uint32_t i, const velo_hits& hits, uint32_t hit)
{
    const float dz = hits.z[hit] - lines.z[i];
    const float dx = hits.x[hit] - (lines.x[i] + lines.tx[i] * dz);
    const float dy = hits.y[hit] - (lines.y[i] + lines.ty[i] * dz);
    return dx * dx + dy * dy;
}

/// The hit of a module pair within phi_tolerance that is closest to line i, if it is closer than `best.scatter`.
/// `taken` hides hits from the search where it is not null.
__device__ closest_hit find_closest_hit(const line_tile& lines, uint32_t i, const velo_hits& hits, uint32_t pair,
                                        uint32_t phi_tolerance, const uint8_t* taken, closest_hit best)
{
    const int16_t phi = static_cast<int16_t>(lines.phi[i]);
    const uint32_t low = phi_bin_of(pair, static_cast<int16_t>(phi - static_cast<int32_t>(phi_tolerance)));
    const uint32_t high = phi_bin_of(pair, static_cast<int16_t>(phi + static_cast<int32_t>(phi_tolerance)));
    uint32_t hit = hits.phi_bin_offset[low], end = hits.phi_bin_offset[high + 1u];
    const bool wraps = high < low;  // up to the last hit of the pair, then from its first
    for (uint32_t part = wraps ? 2u : 1u; part > 0u; --part) {
        const uint32_t stop = part == 2u ? hits.module_pair_offset[pair + 1u] : end;
        for (; hit < stop; ++hit) {
            const float scatter = scatter_of(lines, i, hits, hit);
            const bool closer = (scatter < best.scatter) & (phi_distance(hits.phi[hit], phi) <= phi_tolerance) &
                                (taken == nullptr || taken[hit] == 0);
            best.scatter = closer ? scatter : best.scatter;
            best.hit = closer ? hit : best.hit;
        }
        hit = hits.module_pair_offset[pair];
    }
    return best;
}

}  // namespace hlt
