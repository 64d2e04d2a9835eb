// Kalman fit of long tracks from the end of the VELO through the magnet and the layers of the SciFi
// (docs/physics/long-kalman-filter.md).
//
// One block per event, one thread per track; on the CPU a thread takes `kalman_width` tracks at once, one per lane of a
// vector register.
//
// What bends the track is the kink of the parametrisation of the magnet (lhcb/long_tracks/bend.cuh), in which a track
// is linear but for the slow change of the functions, so that the filter of five parameters (low_rank.cuh) needs no
// step through the field: x(z) = line + kink lever(z), linear about the kink that the long tracking has found. Each
// SciFi hit measures x along its fibre. Bounds: tracks of an event as long_tracks.count; n_scifi_layers hits on a
// track.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/kalman/generated/kalman_full_fit.h"
#include "lhcb/kalman/low_rank.cuh"
#include "lhcb/long_tracks/bend.cuh"
#include "lhcb/long_tracks/generated/long_types.h"
#include "lhcb/scifi/generated/scifi_types.h"

namespace hlt {

constexpr float full_hit_variance = 0.1f * 0.1f;  // mm^2
constexpr float full_start_kink_variance = 1e-4f;
constexpr float full_energy_loss = 19.61f;  // MeV, between the collision and the magnet
constexpr float full_largest_qop = 0.01f;   // 1/MeV; a fit that gives more, or no number, has failed

// Scattering, over p^2 in GeV^2 and at normal incidence: between the end of the VELO and the first layer, and in each
// layer, which turns the track there.
constexpr float full_magnet_position = 746.f;  // mm^2
constexpr float full_magnet_both = 0.131f;     // mm
constexpr float full_magnet_slope = 3.45e-5f;
constexpr float full_layer_slope = 2.2e-6f;
constexpr float full_oblique = 8.f;  // more for tx^2 + ty^2 = 1

/// x, or y, less that of the straight line from the VELO, divided by the kink; and the slope of this.
struct full_lever {
    float value;
    float slope;
};

/// The track of each lane: its functions at the kink about which it is linear. `of_kink`: change with the kink.
struct full_bends {
    float kink[kalman_width];
    float z_magnet[kalman_width], curvature[kalman_width], cubic[kalman_width];
    float z_magnet_of_kink[kalman_width], curvature_of_kink[kalman_width], cubic_of_kink[kalman_width];
    float y_shift[kalman_width], y_slope[kalman_width];  // with ty
};

__device__ __forceinline__ full_lever lever_at(float z_magnet, float curvature, float cubic, float z)
{
    const float dz = z - z_scifi_reference;
    return {z - z_magnet + (curvature + cubic * dz) * dz * dz, 1.f + (2.f * curvature + 3.f * cubic * dz) * dz};
}

/// The change of a lever over a step, of the position behind what the slope before gives, and of the slope.
__device__ __forceinline__ full_lever change_of(const full_lever& before, const full_lever& behind, float dz)
{
    return {behind.value - before.value - before.slope * dz, behind.slope - before.slope};
}

__device__ float derivative(const bend_polynomial& f, float bend)
{
    return f.a[1] + bend * (2.f * f.a[2] + bend * (3.f * f.a[3] + bend * (4.f * f.a[4])));
}

}  // namespace hlt

HLT_KERNEL(kalman_full_fit)
{
    if (!p.takes(blockIdx.x)) return;
    constexpr uint32_t width = hlt::kalman_width;

    const hlt::long_track_parameters& parameters = *p.long_track_parameters;
    const uint32_t first_velo_track = p.velo_end.first(blockIdx.x);
    const uint32_t first_track = p.long_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.long_tracks.count[blockIdx.x];
    const float* hit_x = p.scifi_hits.x + p.scifi_hits.first(blockIdx.x);
    const float* hit_z = p.scifi_hits.z + p.scifi_hits.first(blockIdx.x);

    for (uint32_t group = threadIdx.x * width; group < n_tracks; group += blockDim.x * width) {
        const uint32_t n_here = hlt::min_of(width, n_tracks - group);
        hlt::low_rank_states state;
        hlt::full_bends bends;
        float inverse_p2[width], z[width], n_hits[width];
        float lever[width], lever_slope[width], of_kink[width], of_kink_slope[width], in_y[width], in_y_slope[width];

        for (uint32_t i = 0; i < width; ++i) {
            const uint32_t track = first_track + group + hlt::min_of(i, n_here - 1);
            const uint32_t velo = first_velo_track + p.long_tracks.velo_track[track];
            const hlt::velo_line line{p.velo_end.x[velo], p.velo_end.y[velo], p.velo_end.tx[velo], p.velo_end.ty[velo]};
            const hlt::track_bend bend(parameters, line);
            const float dz = hlt::z_end_scifi - hlt::z_scifi_reference;
            const float behind = p.long_tracks.tx[track] - line.tx;
            float kink = behind;
            for (uint32_t turn = 0; turn < 2; ++turn)
                kink = behind / (1.f + (2.f * bend.curvature(kink) + 3.f * bend.cubic(kink) * dz) * dz);
            bends.kink[i] = kink;
            bends.z_magnet[i] = bend.z_magnet(kink);
            bends.curvature[i] = bend.curvature(kink);
            bends.cubic[i] = bend.cubic(kink);
            bends.z_magnet_of_kink[i] = bends.z_magnet[i] + kink * hlt::derivative(bend.z_magnet, kink);
            bends.curvature_of_kink[i] = bends.curvature[i] + kink * hlt::derivative(bend.curvature, kink);
            bends.cubic_of_kink[i] = bends.cubic[i] + kink * hlt::derivative(bend.cubic, kink);
            bends.y_shift[i] = line.ty * bend.y_shift(kink);
            bends.y_slope[i] = line.ty * bend.y_slope(kink);
            const float per_gev = 1e3f * p.long_tracks.qop[track];
            inverse_p2[i] = per_gev * per_gev * (1.f + hlt::full_oblique * (line.tx * line.tx + line.ty * line.ty));
            state.x[i] = line.x;
            state.y[i] = line.y;
            state.tx[i] = line.tx;
            state.ty[i] = line.ty;
            state.k[i] = 0.f;  // kink less that about which the track is linear
            state.c00[i] = state.c11[i] = p.velo_end.c00[velo];
            state.c20[i] = state.c31[i] = p.velo_end.c20[velo];
            state.c22[i] = state.c33[i] = p.velo_end.c22[velo];
            state.c10[i] = state.c21[i] = state.c30[i] = state.c32[i] = 0.f;
            state.c40[i] = state.c41[i] = state.c42[i] = state.c43[i] = 0.f;
            state.c44[i] = hlt::full_start_kink_variance;
            state.chi2[i] = 0.f;
            z[i] = hlt::z_velo_end;
            lever[i] = lever_slope[i] = of_kink[i] = of_kink_slope[i] = in_y[i] = in_y_slope[i] = 0.f;
            n_hits[i] = 0.f;
        }
        for (uint32_t layer = 0; layer < hlt::n_scifi_layers; ++layer) {
            const float dx_dy = parameters.layer_dx_dy[layer], dz_dy = parameters.layer_dz_dy[layer];
            const float plane_z = parameters.layer_z[layer];
            float measured[width], at_z[width];
            float present[width];  // 1, or 0 without a hit
            for (uint32_t i = 0; i < width; ++i) {
                const uint32_t track = first_track + group + hlt::min_of(i, n_here - 1);
                const uint32_t hit = p.long_tracks.hits[track * hlt::max_scifi_track_hits + layer];
                const bool there = hit != hlt::no_scifi_hit;
                present[i] = there ? 1.f : 0.f;
                measured[i] = there ? hit_x[hit] : 0.f;
                at_z[i] = there ? hit_z[hit] : plane_z;
            }
            for (uint32_t i = 0; i < width; ++i) {
                const float new_z = at_z[i] + dz_dy * (state.y[i] + (at_z[i] - z[i]) * state.ty[i]);
                const float dz = new_z - z[i];
                const hlt::full_lever here =
                    hlt::lever_at(bends.z_magnet[i], bends.curvature[i], bends.cubic[i], new_z);
                const hlt::full_lever change = hlt::change_of({lever[i], lever_slope[i]}, here, dz);
                const hlt::full_lever here_of_kink =
                    hlt::lever_at(bends.z_magnet_of_kink[i], bends.curvature_of_kink[i], bends.cubic_of_kink[i], new_z);
                const hlt::full_lever change_of_kink = hlt::change_of({of_kink[i], of_kink_slope[i]}, here_of_kink, dz);
                const float from_reference = new_z - hlt::z_scifi_reference;
                const hlt::full_lever here_y{bends.y_shift[i] + bends.y_slope[i] * from_reference, bends.y_slope[i]};
                const hlt::full_lever change_y = hlt::change_of({in_y[i], in_y_slope[i]}, here_y, dz);
                const bool from_velo = layer == 0;
                const float slope_noise = (from_velo ? hlt::full_magnet_slope : hlt::full_layer_slope) * inverse_p2[i];
                const float both_noise = from_velo ? hlt::full_magnet_both * inverse_p2[i] : slope_noise * dz;
                const float position_noise =
                    from_velo ? hlt::full_magnet_position * inverse_p2[i] : slope_noise * dz * dz;
                hlt::low_rank_predict(
                    state, i, dz, {change_of_kink.value, change_of_kink.slope, position_noise, both_noise, slope_noise},
                    {change_y.value, change_y.slope, position_noise, both_noise, slope_noise});
                state.x[i] += bends.kink[i] * change.value;
                state.tx[i] += bends.kink[i] * change.slope;
                state.y[i] += bends.kink[i] * change_y.value;
                state.ty[i] += bends.kink[i] * change_y.slope;
                const float residual = measured[i] + dx_dy * state.y[i] - state.x[i];
                hlt::low_rank_update(state, i, -dx_dy, hlt::full_hit_variance, residual, present[i]);
                lever[i] = here.value;
                lever_slope[i] = here.slope;
                of_kink[i] = here_of_kink.value;
                of_kink_slope[i] = here_of_kink.slope;
                in_y[i] = here_y.value;
                in_y_slope[i] = here_y.slope;
                z[i] = new_z;
                n_hits[i] += present[i];
            }
        }
        for (uint32_t i = 0; i < n_here; ++i) {
            const uint32_t track = first_track + group + i;
            const uint32_t velo = first_velo_track + p.long_tracks.velo_track[track];
            const hlt::velo_line line{p.velo_end.x[velo], p.velo_end.y[velo], p.velo_end.tx[velo], p.velo_end.ty[velo]};
            const float kink = bends.kink[i] + state.k[i];
            const hlt::bend_at_kink bend = hlt::track_bend(parameters, line).at(kink);
            const float in_magnet = 1e-3f * parameters.polarity * hlt::s_of(parameters, line, bend);
            const float size = in_magnet < 0.f ? -in_magnet : in_magnet;
            const bool found = size < hlt::full_largest_qop && kink != 0.f;
            const float before_loss = 1.f / (1.f + hlt::full_energy_loss * size);
            const float error = sqrtf(state.c44[i]) * size * before_loss * before_loss / (kink < 0.f ? -kink : kink);
            p.long_tracks.fitted_qop[track] = found ? in_magnet * before_loss : p.long_tracks.qop[track];
            p.long_tracks.qop_error[track] = found ? error : hlt::full_largest_qop;
            p.long_tracks.full_chi2[track] = n_hits[i] > 1.f ? state.chi2[i] / (n_hits[i] - 1.f) : 0.f;
        }
    }
}
