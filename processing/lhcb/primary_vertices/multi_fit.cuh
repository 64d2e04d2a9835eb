// Adaptive fit of all seeds at once: tracks are shared among the vertices by weights
// (docs/physics/primary-vertices.md, steps 5 and 6).
//
// One block per event. A group of up to 32 threads takes a seed; sums over tracks run in pv_lanes lanes (tracks.cuh).
//
// 1. Per track the sum S over all seeds of exp(-chi2 / 2) to the seed on the beam line.
// 2. Per seed, up to max_iterations turns: weight of a track
//        w = exp(-chi2 / 2) / (exp(-chi2_cut / 2) + exp(-chi2 / 2) + S - exp(-chi2 to this seed / 2)),
//    for tracks with chi2 < max_chi2, then the weighted least-squares step of the vertex. The matrix is
//        A = ((a, 0, b), (0, a, c), (b, c, d)),
//        a = sum w W, b = -sum w W tx, c = -sum w W ty, d = sum w W (tx^2 + ty^2),
//    because x and y of a track have the same weight W; its inverse is written out.
// 3. Kept if it had enough tracks in each turn and ended near the beam line; else its n_tracks is 0.
//
// S is taken to the beam line, as is the term that is subtracted.
// Bounds: tracks as pv_tracks.count, seeds as pv_seeds.count.
#pragma once

#include "framework/device/math.cuh"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_beamline_multi_fit.h"
#include "lhcb/primary_vertices/tracks.cuh"

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

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
constexpr uint32_t pv_lanes_at_once = 1;  // of a thread, in registers
#else
constexpr uint32_t pv_lanes_at_once = pv_lanes;  // in vectors
#endif
constexpr uint32_t pv_sum_stride = pv_lanes + 1u;  // threads that add a sum each read different banks of memory
constexpr uint32_t pv_max_groups = max_block_size / pv_lanes;

/// exp(-chi2 / 2) of a track to (x, y, z).
__device__ float pv_track_nearness(float track_x, float track_y, float track_z, float tx, float ty, float weight,
                                   float x, float y, float z)
{
    const float dz = z - track_z;
    const float rx = x - (track_x + tx * dz);
    const float ry = y - (track_y + ty * dz);
    return exp_negative(-0.5f * ((rx * rx + ry * ry) * weight));
}

/// Sum of pv_lanes numbers in the fixed tree: first those half of the lanes apart, then a quarter, ...
__device__ float pv_tree_sum(const float* lanes)
{
    float folded[pv_lanes / 2u];
    for (uint32_t lane = 0; lane < pv_lanes / 2u; ++lane) folded[lane] = lanes[lane] + lanes[lane + pv_lanes / 2u];
    for (uint32_t half = pv_lanes / 4u; half > 0u; half /= 2u)
        for (uint32_t lane = 0; lane < half; ++lane) folded[lane] += folded[lane + half];
    return folded[0];
}

}  // namespace hlt

HLT_KERNEL(pv_beamline_multi_fit)
{
    if (!p.takes(blockIdx.x)) return;
    __shared__ float sums[hlt::pv_max_groups][hlt::n_pv_sums][hlt::pv_sum_stride];

    const uint32_t first = p.pv_tracks.first(blockIdx.x);
    const uint32_t n_tracks = hlt::pv_padded(p.pv_tracks.count[blockIdx.x]);
    const uint32_t n_seeds = p.pv_seeds.count[blockIdx.x];
    const float* seeds = p.pv_seeds.z + p.pv_seeds.first(blockIdx.x);
    hlt::primary_vertex* fitted = p.pv_seeds.fitted + p.pv_seeds.first(blockIdx.x);
    const float* __restrict__ track_x = p.pv_tracks.x + first;
    const float* __restrict__ track_y = p.pv_tracks.y + first;
    const float* __restrict__ track_z = p.pv_tracks.z + first;
    const float* __restrict__ track_tx = p.pv_tracks.tx + first;
    const float* __restrict__ track_ty = p.pv_tracks.ty + first;
    const float* __restrict__ track_weight = p.pv_tracks.weight + first;
    float* __restrict__ denominator = p.scratch.denominator + first;
    const float beamline_x = p.velo_geometry->beamline_x;
    const float beamline_y = p.velo_geometry->beamline_y;

    // 1. Denominators.
    for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x) denominator[i] = 0.f;
    for (uint32_t seed = 0; seed < n_seeds; ++seed) {
        const float seed_z = seeds[seed];
        for (uint32_t i = threadIdx.x; i < n_tracks; i += blockDim.x)
            denominator[i] += hlt::pv_track_nearness(track_x[i], track_y[i], track_z[i], track_tx[i], track_ty[i],
                                                     track_weight[i], beamline_x, beamline_y, seed_z);
    }
    __syncthreads();

    // 2. Fits.
    const uint32_t group_size = hlt::min_of(static_cast<uint32_t>(blockDim.x), hlt::pv_lanes);
    const uint32_t n_groups = blockDim.x / group_size;
    const uint32_t group = threadIdx.x / group_size;
    const uint32_t first_lane = threadIdx.x % group_size;
    if (group >= n_groups) return;
    float (&sum)[hlt::n_pv_sums][hlt::pv_sum_stride] = sums[group];
    const float cut = hlt::exp_negative(-0.5f * p.chi2_cut);

    for (uint32_t seed = group; seed < n_seeds; seed += n_groups) {
        const float seed_z = seeds[seed];
        const float min_tracks = static_cast<float>(seed_z < hlt::pv_z_smog2 ? p.min_tracks_smog2 : p.min_tracks);
        hlt::primary_vertex vertex{beamline_x, beamline_y, seed_z, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
        for (uint32_t turn = 0; turn < p.max_iterations; ++turn) {
            for (uint32_t lane = first_lane; lane < hlt::pv_lanes; lane += group_size * hlt::pv_lanes_at_once) {
                float lane_sum[hlt::n_pv_sums][hlt::pv_lanes_at_once] = {};
                for (uint32_t base = lane; base < n_tracks; base += hlt::pv_lanes) {
                    for (uint32_t k = 0; k < hlt::pv_lanes_at_once; ++k) {
                        const uint32_t i = base + k;
                        const float tx = track_tx[i], ty = track_ty[i], weight = track_weight[i];
                        const float dz = vertex.z - track_z[i];
                        const float rx = vertex.x - (track_x[i] + tx * dz);
                        const float ry = vertex.y - (track_y[i] + ty * dz);
                        const float chi2 = (rx * rx + ry * ry) * weight;
                        const float near = hlt::exp_negative(-0.5f * chi2);
                        const float own = hlt::pv_track_nearness(track_x[i], track_y[i], track_z[i], tx, ty, weight,
                                                                 beamline_x, beamline_y, seed_z);
                        const float used = chi2 < p.max_chi2 ? 1.f : 0.f;  // a factor, not a branch: vectors
                        const float w = used * near / (cut + near + (denominator[i] - own));
                        const float v = w * weight;
                        lane_sum[hlt::pv_sum_count][k] += used;
                        lane_sum[hlt::pv_sum_w][k] += w;
                        lane_sum[hlt::pv_sum_a][k] += v;
                        lane_sum[hlt::pv_sum_b][k] -= v * tx;
                        lane_sum[hlt::pv_sum_c][k] -= v * ty;
                        lane_sum[hlt::pv_sum_d][k] += v * (tx * tx + ty * ty);
                        lane_sum[hlt::pv_sum_gx][k] += v * rx;
                        lane_sum[hlt::pv_sum_gy][k] += v * ry;
                        lane_sum[hlt::pv_sum_gz][k] -= v * (tx * rx + ty * ry);
                    }
                }
                for (uint32_t s = 0; s < hlt::n_pv_sums; ++s)
                    for (uint32_t k = 0; k < hlt::pv_lanes_at_once; ++k) sum[s][lane + k] = lane_sum[s][k];
            }
            __syncwarp();
            for (uint32_t s = first_lane; s < hlt::n_pv_sums; s += group_size) sum[s][0] = hlt::pv_tree_sum(sum[s]);
            __syncwarp();
            const float count = sum[hlt::pv_sum_count][0], w = sum[hlt::pv_sum_w][0], a = sum[hlt::pv_sum_a][0];
            const float b = sum[hlt::pv_sum_b][0], c = sum[hlt::pv_sum_c][0], d = sum[hlt::pv_sum_d][0];
            const float gx = sum[hlt::pv_sum_gx][0], gy = sum[hlt::pv_sum_gy][0], gz = sum[hlt::pv_sum_gz][0];
            __syncwarp();  // all threads have read before the next turn overwrites

            vertex.n_tracks = 0.f;
            if (!(count >= min_tracks) || !(a > 0.f)) break;
            const float b_over_a = b / a, c_over_a = c / a;
            const float remaining = d - (b * b_over_a + c * c_over_a);
            if (!(remaining > 0.f)) break;
            vertex.c22 = 1.f / remaining;
            vertex.c20 = -b_over_a * vertex.c22;
            vertex.c21 = -c_over_a * vertex.c22;
            vertex.c00 = 1.f / a - b_over_a * vertex.c20;
            vertex.c10 = -b_over_a * vertex.c21;
            vertex.c11 = 1.f / a - c_over_a * vertex.c21;
            const float step_z = vertex.c20 * gx + vertex.c21 * gy + vertex.c22 * gz;
            vertex.x -= vertex.c00 * gx + vertex.c10 * gy + vertex.c20 * gz;
            vertex.y -= vertex.c10 * gx + vertex.c11 * gy + vertex.c21 * gz;
            vertex.z -= step_z;
            vertex.n_tracks = w;
            if (step_z < p.max_dz_converged && step_z > -p.max_dz_converged) break;
        }

        const float dx = vertex.x - beamline_x, dy = vertex.y - beamline_y;
        if (!(dx * dx + dy * dy < p.max_rho2)) vertex.n_tracks = 0.f;
        if (first_lane == 0) fitted[seed] = vertex;
    }
}
