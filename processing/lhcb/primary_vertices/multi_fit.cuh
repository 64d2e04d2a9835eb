// Adaptive fit of all seeds at once: weights share the tracks among the vertices (docs/physics/primary-vertices.md,
// steps 5 and 6).
//
// One block per event. A group of up to 32 threads fits a seed; sums over tracks run in pv_lanes lanes (tracks.cuh).
//
// 1. Per track the sum S over all seeds of exp(-chi2 / 2) to the seed on the beam line.
// 2. Per seed, up to max_iterations turns: weight of a track
//        w = exp(-chi2 / 2) / (exp(-chi2_cut / 2) + exp(-chi2 / 2) + S - exp(-chi2 to this seed / 2)),
//    for tracks with chi2 < max_chi2, then the weighted least-squares step of the vertex. The matrix is
//        A = ((a, 0, b), (0, a, c), (b, c, d)),
//        a = sum w W, b = -sum w W tx, c = -sum w W ty, d = sum w W (tx^2 + ty^2),
//    because x and y of a track have the same weight W; its inverse is written out.
// 3. A vertex is kept if it had enough tracks in each turn and ended near the beam line; otherwise its n_tracks is 0.
//
// Both S and the subtracted term are computed for the seed on the beam line.
// Bounds: tracks as pv_tracks.count, seeds as pv_seeds.count.
#pragma once

#include "framework/device/math.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_beamline_multi_fit.h"
#include "lhcb/primary_vertices/tracks.cuh"
#include "lhcb/velo/beam_line.cuh"

namespace hlt {

enum pv_sum : uint32_t {
    pv_sum_count,  // tracks within max_chi2
    pv_sum_w,
    pv_sum_a,
    pv_sum_b,
    pv_sum_c,
    pv_sum_d,
    pv_sum_gx,
    pv_sum_gy,
    pv_sum_gz,
    n_pv_sums,
};

constexpr uint32_t pv_sum_stride = pv_lanes + 4u;  // each thread reads one sum: aligned, in different memory banks
constexpr uint32_t pv_max_groups = max_block_size / pv_lanes;
constexpr uint32_t pv_mask_bits = 32;

using pv_lane_sums = float[n_pv_sums];

/// A track in the form that the fit reads.
struct alignas(16) pv_fit_track {
    float x, y, z, tx, ty, weight;
    float denominator;
    float slope2;  // tx^2 + ty^2
};
constexpr uint32_t pv_fit_track_width = sizeof(pv_fit_track) / sizeof(float);
static_assert(pv_fit_track_width == 8);  // as declared for the scratch

struct pv_fit_columns {
    const float* __restrict__ x;
    const float* __restrict__ y;
    const float* __restrict__ z;
    const float* __restrict__ tx;
    const float* __restrict__ ty;
    const float* __restrict__ weight;
};

/// The tracks of an event. The fields of a track are neighbours in `scratch`, so a GPU reads a track in one access.
struct pv_fit_tracks {
    pv_fit_columns columns;
    float* __restrict__ scratch;
    uint32_t n;  // padding included

    __device__ const pv_fit_track& at(uint32_t i) const { return reinterpret_cast<const pv_fit_track*>(scratch)[i]; }
    __device__ pv_fit_track column_values(uint32_t i, float denominator) const
    {
        const float tx = columns.tx[i], ty = columns.ty[i];
        return {columns.x[i], columns.y[i], columns.z[i], tx, ty, columns.weight[i], denominator, tx * tx + ty * ty};
    }
};

struct pv_point {
    float x, y, z;  // mm
};

__device__ pv_point pv_on_beam_line(const velo_beam_line& beam_line, float z)
{
    return {beam_line.x_at(z), beam_line.y_at(z), z};
}

/// A point relative to a track at the z of the point.
struct pv_residual {
    float x, y;  // mm
    float chi2;
};

__device__ pv_residual pv_residual_of(const pv_fit_track& track, pv_point point)
{
    const float dz = point.z - track.z;
    const float x = point.x - (track.x + track.tx * dz);
    const float y = point.y - (track.y + track.ty * dz);
    return {x, y, (x * x + y * y) * track.weight};
}

__device__ float pv_nearness(float chi2) { return exp_negative(-0.5f * chi2); }

/// Denominators: for each track the sum over all seeds of its nearness to the seed on the beam line. A track is near
/// few seeds; its thread finds these first.
__device__ void pv_sum_nearness(const pv_fit_tracks& tracks, const float* seeds, uint32_t n_seeds,
                                const velo_beam_line& beam_line)
{
    for (uint32_t i = threadIdx.x; i < tracks.n; i += blockDim.x) {
        pv_fit_track track = tracks.column_values(i, 0.f);
        for (uint32_t first = 0; first < n_seeds; first += pv_mask_bits) {
            const uint32_t n = min_of(pv_mask_bits, n_seeds - first);
            const float* seed = seeds + first;
            uint32_t near = 0;
#pragma unroll 2
            for (uint32_t k = 0; k < n; ++k, ++seed) {
                const float chi2 = pv_residual_of(track, pv_on_beam_line(beam_line, *seed)).chi2;
                near |= (chi2 < -2.f * exp_negative_zero ? 1u : 0u) << k;
            }
            for (; near != 0; near &= near - 1u) {
                const float z = seeds[first + static_cast<uint32_t>(__ffs(static_cast<int>(near))) - 1u];
                track.denominator += pv_nearness(pv_residual_of(track, pv_on_beam_line(beam_line, z)).chi2);
            }
        }
        reinterpret_cast<pv_fit_track*>(tracks.scratch)[i] = track;
    }
}

struct pv_fit {
    pv_point seed;
    pv_point vertex;
    float cut;  // nearness at chi2_cut
    float max_chi2;
    bool begins;  // the vertex is the seed
};

/// Add a track within max_chi2. `near`, `own`: nearness to the vertex, and to the seed.
__device__ void pv_add_track(const pv_fit_track& track, const pv_fit& fit, pv_residual residual, float near, float own,
                             pv_lane_sums& sum)
{
    const float w = near / (fit.cut + near + (track.denominator - own));
    const float v = w * track.weight;
    sum[pv_sum_count] += 1.f;
    sum[pv_sum_w] += w;
    sum[pv_sum_a] += v;
    sum[pv_sum_b] -= v * track.tx;
    sum[pv_sum_c] -= v * track.ty;
    sum[pv_sum_d] += v * track.slope2;
    sum[pv_sum_gx] += v * residual.x;
    sum[pv_sum_gy] += v * residual.y;
    sum[pv_sum_gz] -= v * (track.tx * residual.x + track.ty * residual.y);
}

/// Add the tracks of a lane. Few tracks are within max_chi2; the thread finds these first.
__device__ void pv_add_lane(const pv_fit_tracks& tracks, uint32_t lane, const pv_fit& fit, pv_lane_sums& sum)
{
    const pv_fit_track* rows = &tracks.at(lane);
    for (uint32_t n_left = tracks.n / pv_lanes; n_left != 0;) {
        const uint32_t n = min_of(pv_mask_bits, n_left);
        const pv_fit_track* track = rows;
        uint32_t within = 0;
#pragma unroll 2
        for (uint32_t row = 0; row < n; ++row, track += pv_lanes)
            within |= (pv_residual_of(*track, fit.vertex).chi2 < fit.max_chi2 ? 1u : 0u) << row;
        for (; within != 0; within &= within - 1u) {
            const pv_fit_track track = rows[pv_lanes * (static_cast<uint32_t>(__ffs(static_cast<int>(within))) - 1u)];
            const pv_residual residual = pv_residual_of(track, fit.vertex);
            const float near = pv_nearness(residual.chi2);
            const float own = fit.begins ? near : pv_nearness(pv_residual_of(track, fit.seed).chi2);
            pv_add_track(track, fit, residual, near, own, sum);
        }
        rows += n * pv_lanes;
        n_left -= n;
    }
}

/// Sum of pv_lanes numbers in the fixed tree: first pairs at a distance of half the lanes, then of a quarter, ...
__device__ float pv_tree_sum(const float* lanes)
{
    float folded[pv_lanes / 2u];
    for (uint32_t lane = 0; lane < pv_lanes / 2u; ++lane) folded[lane] = lanes[lane] + lanes[lane + pv_lanes / 2u];
    for (uint32_t half = pv_lanes / 4u; half > 0u; half /= 2u)
        for (uint32_t lane = 0; lane < half; ++lane) folded[lane] += folded[lane + half];
    return folded[0];
}

/// The least-squares step of a vertex, and its covariance. Returns false if the sums give no valid vertex.
__device__ bool pv_move_vertex(primary_vertex& vertex, float a, float b, float c, float d, float gx, float gy, float gz,
                               float& step_z)
{
    if (!(a > 0.f)) return false;
    const float b_over_a = b / a, c_over_a = c / a;
    const float remaining = d - (b * b_over_a + c * c_over_a);
    if (!(remaining > 0.f)) return false;
    vertex.c22 = 1.f / remaining;
    vertex.c20 = -b_over_a * vertex.c22;
    vertex.c21 = -c_over_a * vertex.c22;
    vertex.c00 = 1.f / a - b_over_a * vertex.c20;
    vertex.c10 = -b_over_a * vertex.c21;
    vertex.c11 = 1.f / a - c_over_a * vertex.c21;
    step_z = vertex.c20 * gx + vertex.c21 * gy + vertex.c22 * gz;
    vertex.x -= vertex.c00 * gx + vertex.c10 * gy + vertex.c20 * gz;
    vertex.y -= vertex.c10 * gx + vertex.c11 * gy + vertex.c21 * gz;
    vertex.z -= step_z;
    return true;
}

/// Fit the seeds of one set of tracks. `p`: the cuts. The threads of the block call it together.
template <typename Cuts>
__device__ void pv_fit_seeds(const Cuts& p, const pv_fit_tracks& tracks, const float* seeds, uint32_t n_seeds,
                             const velo_beam_line& beam_line, primary_vertex* fitted)
{
    alignas(16) __shared__ float sums[pv_max_groups][n_pv_sums][pv_sum_stride];

    // 1. Denominators.
    pv_sum_nearness(tracks, seeds, n_seeds, beam_line);
    __syncthreads();

    // 2. Fits.
    const uint32_t group_size = min_of(static_cast<uint32_t>(blockDim.x), pv_lanes);
    const uint32_t n_groups = blockDim.x / group_size;
    const uint32_t group = threadIdx.x / group_size;
    const uint32_t first_lane = threadIdx.x % group_size;
    if (group >= n_groups) return;
    float (&sum)[n_pv_sums][pv_sum_stride] = sums[group];
    const float cut = pv_nearness(p.chi2_cut);

    for (uint32_t seed = group; seed < n_seeds; seed += n_groups) {
        const pv_point at_seed = pv_on_beam_line(beam_line, seeds[seed]);
        const float min_tracks = static_cast<float>(at_seed.z < pv_z_smog2 ? p.min_tracks_smog2 : p.min_tracks);
        primary_vertex vertex{at_seed.x, at_seed.y, at_seed.z, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
        for (uint32_t turn = 0; turn < p.max_iterations; ++turn) {
            const pv_fit fit{at_seed, {vertex.x, vertex.y, vertex.z}, cut, p.max_chi2, turn == 0};
            for (uint32_t lane = first_lane; lane < pv_lanes; lane += group_size) {
                pv_lane_sums lane_sum = {};
                pv_add_lane(tracks, lane, fit, lane_sum);
                for (uint32_t s = 0; s < n_pv_sums; ++s) sum[s][lane] = lane_sum[s];
            }
            __syncwarp();
            for (uint32_t s = first_lane; s < n_pv_sums; s += group_size) sum[s][0] = pv_tree_sum(sum[s]);
            __syncwarp();
            const float count = sum[pv_sum_count][0], w = sum[pv_sum_w][0], a = sum[pv_sum_a][0];
            const float b = sum[pv_sum_b][0], c = sum[pv_sum_c][0], d = sum[pv_sum_d][0];
            const float gx = sum[pv_sum_gx][0], gy = sum[pv_sum_gy][0], gz = sum[pv_sum_gz][0];
            __syncwarp();  // all threads have read before the next turn overwrites

            vertex.n_tracks = 0.f;
            float step_z;
            if (!(count >= min_tracks) || !pv_move_vertex(vertex, a, b, c, d, gx, gy, gz, step_z)) break;
            vertex.n_tracks = w;
            if (step_z < p.max_dz_converged && step_z > -p.max_dz_converged) break;
        }

        const float dx = vertex.x - beam_line.x_at(vertex.z), dy = vertex.y - beam_line.y_at(vertex.z);
        if (!(dx * dx + dy * dy < p.max_rho2)) vertex.n_tracks = 0.f;
        if (first_lane == 0) fitted[seed] = vertex;
    }
}

}  // namespace hlt

HLT_KERNEL(pv_beamline_multi_fit)
{
    if (!p.takes(blockIdx.x)) return;
    const uint32_t first = p.pv_tracks.first(blockIdx.x);
    const hlt::pv_fit_columns columns{p.pv_tracks.x + first,  p.pv_tracks.y + first,  p.pv_tracks.z + first,
                                      p.pv_tracks.tx + first, p.pv_tracks.ty + first, p.pv_tracks.fit_weight + first};
    const hlt::pv_fit_tracks tracks{columns, p.scratch.tracks + hlt::pv_fit_track_width * first,
                                    hlt::pv_padded(p.pv_tracks.count[blockIdx.x])};
    hlt::pv_fit_seeds(p, tracks, p.pv_seeds.z + p.pv_seeds.first(blockIdx.x), p.pv_seeds.count[blockIdx.x],
                      hlt::velo_beam_line(*p.velo_geometry), p.pv_seeds.fitted + p.pv_seeds.first(blockIdx.x));
}
