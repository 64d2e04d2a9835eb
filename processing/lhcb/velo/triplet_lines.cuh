// Straight lines through two hits, and the hit of a module pair that lies closest to one: what seeding and forwarding
// of search by triplet have in common.
#pragma once

#include "framework/device/vector8.cuh"
#include "lhcb/velo/hit.cuh"
#include "lhcb/velo/phi_bins.cuh"

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
    float dz[triplet_tile];                                      // from b to where the pair is entered
    float x[triplet_tile], y[triplet_tile], z[triplet_tile];     // of b; then x and y at z = 0
    float tx[triplet_tile], ty[triplet_tile], tz[triplet_tile];  // x, y and z of a; then slopes
    float max_scatter[triplet_tile];                             // mm^2
    int32_t first_bin[triplet_tile], last_bin[triplet_tile];     // of phi that the window touches
};

/// Second step for the first n lines of the tile: the line, and its window in phi at the pair. A hit may be as far away
/// as max_scatter says (mm^2); phi_tolerance limits the window near the beam, in units of 2 pi / 2^16.
__device__ void follow_lines(line_tile& lines, uint32_t n, uint32_t pair, float max_scatter, float phi_tolerance)
{
    float* __restrict__ x = lines.x;
    float* __restrict__ y = lines.y;
    const float* __restrict__ z = lines.z;
    const float* __restrict__ step = lines.dz;
    float* __restrict__ tx = lines.tx;
    float* __restrict__ ty = lines.ty;
    const float* __restrict__ tz = lines.tz;
    int32_t* __restrict__ first_bin = lines.first_bin;
    int32_t* __restrict__ last_bin = lines.last_bin;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const float per_z = 1.f / (tz[i] - z[i]);
        const float slope_x = (tx[i] - x[i]) * per_z, slope_y = (ty[i] - y[i]) * per_z;
        const float at_x = x[i] + slope_x * step[i], at_y = y[i] + slope_y * step[i];
        const float r2 = at_x * at_x + at_y * at_y;
        const float wanted = sqrtf(max_scatter / r2) * velo_phi_units_per_radian + phi_margin;
        const int32_t tolerance = static_cast<int32_t>(min_of(wanted, phi_tolerance));
        const int32_t phi = velo_phi(at_x, at_y) + 32768;
        first_bin[i] = phi_bin(pair, phi - tolerance);
        last_bin[i] = phi_bin(pair, phi + tolerance);
        x[i] -= slope_x * z[i];
        y[i] -= slope_y * z[i];
        tx[i] = slope_x;
        ty[i] = slope_y;
    }
}

/// Hits of a window that are compared at once. Hit arrays have as many places behind the last hit of an event.
constexpr uint32_t window_width = velo_hit_padding;
static_assert(window_width == 8u, "the vectors of the CPU have eight lanes");

/// How well a hit fits a line: the bits of its scatter, the lowest of them replaced by which hit of its group of
/// window_width it is. The lowest rank is the closest hit, of equal ones the first.
constexpr uint32_t rank_bits = window_width - 1u;
constexpr uint32_t no_rank = 0xffffffffu;

struct closest_hit {
    uint32_t hit;  // or no_hit
    uint32_t rank;

    __device__ uint32_t scatter_bits() const { return rank & ~rank_bits; }
};

/// Lowest rank of hits [begin, begin + n), n <= window_width, that are closer to line i than max_scatter.
template <bool only_unused>
__device__ uint32_t lowest_rank(const line_tile& lines, uint32_t i, const velo_hits& hits,
                                const uint32_t* __restrict__ used, uint32_t begin, uint32_t n, float max_scatter)
{
    const float line_x = lines.x[i], line_y = lines.y[i], tx = lines.tx[i], ty = lines.ty[i];
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    uint32_t lowest = no_rank;
    for (uint32_t k = 0; k < n; ++k) {
        const uint32_t hit = begin + k;
        const float dx = hits.x[hit] - (line_x + tx * hits.z[hit]);
        const float dy = hits.y[hit] - (line_y + ty * hits.z[hit]);
        const float scatter = dx * dx + dy * dy;
        const bool fits = scatter < max_scatter && !(only_unused && used[hit] != 0u);
        if (fits) lowest = min_of(lowest, (__float_as_uint(scatter) & ~rank_bits) | k);
    }
    return lowest;
#else
    float8 x, y, z;
    load8(x, hits.x + begin);
    load8(y, hits.y + begin);
    load8(z, hits.z + begin);
    const float8 dx = x - (line_x + tx * z);
    const float8 dy = y - (line_y + ty * z);
    const float8 scatter = dx * dx + dy * dy;
    const int8x32 lane{0, 1, 2, 3, 4, 5, 6, 7};
    int8x32 fits = (lane < static_cast<int32_t>(n)) & (scatter < max_scatter);
    if (only_unused) {
        int8x32 taken;
        load8(taken, used + begin);
        fits &= taken == 0;
    }
    int8x32 rank;
    load8(rank, &scatter);
    rank = (rank & static_cast<int32_t>(~rank_bits)) | lane | ~fits;
    uint8x32 ranks;
    load8(ranks, &rank);
    return lowest_lane(ranks);
#endif
}

/// The hit of a pair closest to line i, of those in the bins of its window.
template <bool only_unused>
__device__ closest_hit find_closest_hit(const line_tile& lines, uint32_t i, const velo_hits& hits, uint32_t pair,
                                        const uint32_t* __restrict__ used, float max_scatter)
{
    const uint32_t begin = hits.phi_bin_offset[lines.first_bin[i]];
    const uint32_t end = hits.phi_bin_offset[lines.last_bin[i] + 1];
    const bool wraps = lines.last_bin[i] < lines.first_bin[i];
    closest_hit best{no_hit, no_rank};
    if (!wraps && end - begin <= window_width) {
        best.rank = lowest_rank<only_unused>(lines, i, hits, used, begin, end - begin, max_scatter);
        best.hit = best.rank != no_rank ? begin + (best.rank & rank_bits) : no_hit;
        return best;
    }
    // Up to the last hit of the pair, then on from its first.
    const uint32_t pair_begin = hits.module_pair_offset[pair], pair_end = hits.module_pair_offset[pair + 1u];
    const uint32_t parts[2][2] = {{begin, wraps ? pair_end : end}, {pair_begin, wraps ? end : pair_begin}};
    for (const auto& part : parts) {
        for (uint32_t first = part[0]; first < part[1]; first += window_width) {
            const uint32_t n = min_of(part[1] - first, window_width);
            const uint32_t rank = lowest_rank<only_unused>(lines, i, hits, used, first, n, max_scatter);
            if ((rank & ~rank_bits) < best.scatter_bits()) best = {first + (rank & rank_bits), rank};
        }
    }
    return best;
}

}  // namespace hlt
