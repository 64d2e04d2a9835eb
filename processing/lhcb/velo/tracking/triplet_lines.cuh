// Straight lines through two hits, and the hit of a module pair that lies closest to one. Seeding and forwarding of
// search by triplet share them. A line stays in the registers of its thread from its two hits to the closest one.
#pragma once

#include "lhcb/velo/hit.cuh"
#include "lhcb/velo/tracking/phi_bins.cuh"

namespace hlt {

constexpr uint32_t no_hit = 0xffff;
static_assert(no_hit >= max_velo_clusters_of_event);

/// Added to the phi tolerance, in units of 2 pi / 2^16: phi of a hit is truncated, and a chord is shorter than its arc.
constexpr float phi_margin = 16.f;

/// Position of a hit, and in 32 bits phi and above it the number of the hit. One access loads all four.
struct alignas(16) hit_point {
    float x, y, z;
    float phi_and_hit;  // the bits of an integer: all four are loaded as numbers of one type

    __device__ int32_t phi() const { return static_cast<int16_t>(__float_as_uint(phi_and_hit)); }
    __device__ uint32_t hit() const { return __float_as_uint(phi_and_hit) >> 16; }
};

/// A NaN: no distance from it is below any limit.
__device__ float not_a_number() { return __uint_as_float(0x7fc00000u); }

/// Hits of one event, sorted by phi in each module pair.
struct velo_hits {
    event_column<const float> x, y, z;
    event_column<const int16_t> phi;
    event_column<uint32_t> used;     // by a track
    event_column<hit_point> points;  // copy of the hits in one column
    event_column<const uint16_t> phi_bin_offset;
    event_column<const uint32_t> module_pair_offset;

    __device__ hit_point operator[](uint32_t hit) const { return points[hit]; }
};

/// A line through two hits, which is followed to `step` (mm) upstream of b.
struct two_hits {
    hit_point a, b;  // b is upstream
    float step;
};

/// A line, and its window in phi at a module pair.
struct line_in_pair {
    float x, y;  // at z = 0
    float tx, ty;
    int32_t first_bin, last_bin;  // bins of the pair that the window touches
};

/// The module pair that lines are followed to.
struct line_target {
    event_column<const uint16_t> bins;  // its phi_bin_offset
    uint32_t begin, end;                // its hits
    float max_scatter;                  // mm^2, largest squared distance of a hit
    float phi_tolerance;                // limits the window near the beam, in units of 2 pi / 2^16

    __device__ line_target(const velo_hits& hits, uint32_t pair, float max_scatter, float phi_tolerance)
        : bins(hits.phi_bin_offset.from(pair * phi_bins_per_pair)),
          begin(hits.module_pair_offset[pair]),
          end(hits.module_pair_offset[pair + 1u]),
          max_scatter(max_scatter),
          phi_tolerance(phi_tolerance)
    {
    }
};

/// The line through two hits, and its window in phi.
__device__ line_in_pair line_through(const two_hits& hits, const line_target& target)
{
    const float per_z = 1.f / (hits.a.z - hits.b.z);
    const float tx = (hits.a.x - hits.b.x) * per_z, ty = (hits.a.y - hits.b.y) * per_z;
    const float at_x = hits.b.x + tx * hits.step, at_y = hits.b.y + ty * hits.step;
    const float r2 = at_x * at_x + at_y * at_y;
    const float wanted = sqrtf(target.max_scatter / r2) * velo_phi_units_per_radian + phi_margin;
    const int32_t tolerance = static_cast<int32_t>(min_of(wanted, target.phi_tolerance));
    const int32_t phi = velo_phi(at_x, at_y) + 32768;
    return {hits.b.x - tx * hits.b.z,    hits.b.y - ty * hits.b.z,   tx, ty,
            phi_bin(0, phi - tolerance), phi_bin(0, phi + tolerance)};
}

/// These lowest bits of a scatter do not count: among equal ones the first hit of the window is the closest.
constexpr uint32_t rank_bits = 7;
constexpr uint32_t no_rank = 0xffffffffu;

/// The hit of a pair that lies closest to a line, and the bits of its scatter without rank_bits.
struct closest_hit {
    uint32_t hit;  // or no_hit
    uint32_t scatter_bits;
};

/// Lines of the threads of a warp: 32 from the first one on, then 32 after each step of `threads` lines.
struct line_share {
    uint32_t first_of_warp;
    uint32_t threads;
};

/// The closest hit in the bins of the line's window.
template <bool only_unused>
__device__ closest_hit find_closest_hit(const line_in_pair& line, const velo_hits& hits, const line_target& target)
{
    const uint32_t begin = target.bins[line.first_bin], end = target.bins[line.last_bin + 1];
    const bool wraps = line.last_bin < line.first_bin;
    const hit_point* const pair_begin = &hits.points[target.begin];
    const hit_point* const pair_end = &hits.points[target.end];
    const hit_point* point = &hits.points[begin];
    // The bits of non-negative numbers compare like the numbers. A scatter below a limit without rank_bits is also
    // below it without its own rank_bits.
    uint32_t limit = __float_as_uint(target.max_scatter);
    float closest = __uint_as_float(no_hit << 16);
#pragma unroll 1  // unrolled, the lanes of a warp would diverge
    for (uint32_t n = end - begin + (wraps ? target.end - target.begin : 0u); n > 0u; --n) {
        if (point == pair_end) point = pair_begin;
        const hit_point hit = *point++;
        const float dx = hit.x - (line.x + line.tx * hit.z);
        const float dy = hit.y - (line.y + line.ty * hit.z);
        const uint32_t scatter = __float_as_uint(dx * dx + dy * dy);
        if (scatter < limit && !(only_unused && hits.used[hit.hit()] != 0u)) {
            limit = scatter & ~rank_bits;
            closest = hit.phi_and_hit;
        }
    }
    return {__float_as_uint(closest) >> 16, limit};
}

/// Find the hit closest to each of n lines. `line_at(i)` returns the two hits of line i; `take(i, closest)` is called
/// with the result. All lanes of a warp call it together, so it is also called for i >= n, with a result to be ignored.
template <bool only_unused, typename LineAt, typename Take>
__device__ void follow_lines(const velo_hits& hits, const line_target& target, const line_share& share, uint32_t n,
                             LineAt line_at, Take take)
{
    for (uint32_t first = share.first_of_warp; first < n; first += share.threads) {
        const uint32_t i = first + threadIdx.x % warp_size;
        const line_in_pair line = line_through(line_at(min_of(i, n - 1u)), target);
        take(i, find_closest_hit<only_unused>(line, hits, target));
    }
}

}  // namespace hlt
