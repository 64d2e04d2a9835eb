// Kalman fit of long tracks through VELO, UT, magnet and SciFi: q/p, its error, chi2, and the state behind the last hit
// (docs/physics/long-kalman-filter.md).
//
// One block per event, one thread per track; on the CPU a thread takes `kalman_width` tracks at once, one per lane of a
// vector register.
//
// The VELO hits are filtered with the momentum of the long tracking (velo_filter.cuh), from the beam line outwards.
// What bends the track behind them is the kink of the parametrisation of the magnet (lhcb/long_tracks/bend.cuh), in
// which a track is linear but for the slow change of the functions, so that the filter of five parameters
// (low_rank.cuh) needs no step through the field: x(z) = line + kink lever(z), linear about the kink that the long
// tracking has found. Each UT and SciFi hit measures x along its strip or fibre. Bounds: tracks of an event as
// long_tracks.count; max_velo_track_hits, n_long_ut_layers and n_scifi_layers hits on a track.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/kalman/generated/kalman_full_fit.h"
#include "lhcb/kalman/low_rank.cuh"
#include "lhcb/kalman/velo_filter.cuh"
#include "lhcb/long_tracks/bend.cuh"
#include "lhcb/long_tracks/generated/long_types.h"
#include "lhcb/scifi/generated/scifi_types.h"

namespace hlt {

constexpr float full_largest_qop = 0.01f;  // 1/MeV; a fit that gives more, or no number, has failed

/// x, or y, less that of the straight line from the VELO, divided by the kink; and the slope of this.
struct full_lever {
    float value;
    float slope;
};

/// The levers where a state is: of x, of its change with the kink (the derivative of kink times lever), of y.
struct full_levers {
    float x[kalman_width], x_slope[kalman_width];
    float of_kink[kalman_width], of_kink_slope[kalman_width];
    float y[kalman_width], y_slope[kalman_width];
};

/// The track of each lane in the SciFi: its functions at the kink about which it is linear. `of_kink`: change with the
/// kink.
struct full_bends {
    float z_magnet[kalman_width], curvature[kalman_width], cubic[kalman_width];
    float z_magnet_of_kink[kalman_width], curvature_of_kink[kalman_width], cubic_of_kink[kalman_width];
    float y_shift[kalman_width], y_slope[kalman_width];  // with ty
};

/// Where each lane is, and the momentum that scatters.
struct full_places {
    float kink[kalman_width];
    float z[kalman_width];
    float inverse_p2[kalman_width];  // 1/GeV^2, with the oblique way through the material
};

/// The material of a step, for 1 GeV: of a thin layer at its begin the variance of the slope is sufficient.
struct full_step {
    bool is_thick;
    float position, both, slope;
};

/// Noise of a step, position and slope of x, and of y.
struct full_noise {
    float position_x, position_y, both, slope;
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

__device__ __forceinline__ full_noise noise_of_step(const full_step& step, float dz, float inverse_p2)
{
    const float position = (step.is_thick ? step.position : step.slope * dz * dz) * inverse_p2;
    const float both = (step.is_thick ? step.both : step.slope * dz) * inverse_p2;
    return {position, position, both, step.slope * inverse_p2};
}

/// To new_z, where the levers are x, of_kink and y.
__device__ __forceinline__ void full_predict(low_rank_states& state, full_places& places, full_levers& levers,
                                             uint32_t i, float new_z, const full_lever& x, const full_lever& of_kink,
                                             const full_lever& y, const full_noise& noise)
{
    const float dz = new_z - places.z[i];
    const float kink = places.kink[i];
    const full_lever change = change_of({levers.x[i], levers.x_slope[i]}, x, dz);
    const full_lever change_of_kink = change_of({levers.of_kink[i], levers.of_kink_slope[i]}, of_kink, dz);
    const full_lever change_y = change_of({levers.y[i], levers.y_slope[i]}, y, dz);
    low_rank_predict(state, i, dz,
                     {change_of_kink.value, change_of_kink.slope, noise.position_x, noise.both, noise.slope},
                     {change_y.value, change_y.slope, noise.position_y, noise.both, noise.slope});
    state.x[i] += kink * change.value;
    state.tx[i] += kink * change.slope;
    state.y[i] += kink * change_y.value;
    state.ty[i] += kink * change_y.slope;
    levers.x[i] = x.value;
    levers.x_slope[i] = x.slope;
    levers.of_kink[i] = of_kink.value;
    levers.of_kink_slope[i] = of_kink.slope;
    levers.y[i] = y.value;
    levers.y_slope[i] = y.slope;
    places.z[i] = new_z;
}

/// The start behind the VELO: the line of the filter of its hits.
__device__ void full_start(low_rank_states& state, uint32_t i, const long_fit_state& velo)
{
    state.x[i] = velo.x.x[i];
    state.y[i] = velo.y.x[i];
    state.tx[i] = velo.x.t[i];
    state.ty[i] = velo.y.t[i];
    state.c00[i] = velo.x.c00[i];
    state.c20[i] = velo.x.c20[i];
    state.c22[i] = velo.x.c22[i];
    state.c11[i] = velo.y.c00[i];
    state.c31[i] = velo.y.c20[i];
    state.c33[i] = velo.y.c22[i];
    state.k[i] = 0.f;  // kink less that about which the track is linear
    state.c10[i] = state.c21[i] = state.c30[i] = state.c32[i] = 0.f;
    state.c40[i] = state.c41[i] = state.c42[i] = state.c43[i] = 0.f;
    state.chi2[i] = 0.f;
}

/// The kink of a track with the slope tx_end at z_end_scifi.
__device__ float full_kink(const track_bend& bend, const velo_line& line, float tx_end)
{
    const float dz = z_end_scifi - z_scifi_reference;
    const float behind = tx_end - line.tx;
    float kink = behind;
    for (uint32_t turn = 0; turn < 2; ++turn)
        kink = behind / (1.f + (2.f * bend.curvature(kink) + 3.f * bend.cubic(kink) * dz) * dz);
    return kink;
}

}  // namespace hlt

HLT_KERNEL(kalman_full_fit)
{
    if (!p.takes(blockIdx.x)) return;
    constexpr uint32_t width = hlt::kalman_width;

    const hlt::long_track_parameters& parameters = *p.long_track_parameters;
    const hlt::velo_field field = *p.velo_field;
    const uint32_t first_velo_hit = p.velo_hits.first(blockIdx.x);
    const uint32_t first_velo_track = p.velo_tracks.first(blockIdx.x);
    const uint32_t first_track = p.long_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.long_tracks.count[blockIdx.x];
    const uint32_t first_ut_hit = p.ut_hits.first(blockIdx.x);
    const uint32_t first_scifi_hit = p.scifi_hits.first(blockIdx.x);

    for (uint32_t group = threadIdx.x * width; group < n_tracks; group += blockDim.x * width) {
        const uint32_t n_here = hlt::min_of(width, n_tracks - group);
        hlt::low_rank_states state;
        hlt::full_places places;
        hlt::full_levers levers;
        float line_x[width], line_y[width], line_tx[width], line_ty[width];  // at z_velo_end
        {
            hlt::kalman_hits hits;
            hlt::long_fit_state velo;
            hits.rows = 1;
            for (uint32_t i = 0; i < width; ++i) {
                const uint32_t track = first_track + group + hlt::min_of(i, n_here - 1);
                hits.count[i] = p.velo_tracks.hit_count[first_velo_track + p.long_tracks.velo_track[track]];
                hits.rows = hlt::max_of(hits.rows, hits.count[i]);
                hlt::long_fit_momentum(velo, i, p.long_tracks.qop[track]);
            }
            for (uint32_t i = 0; i < width; ++i) {
                const uint32_t track = first_track + group + hlt::min_of(i, n_here - 1);
                const uint32_t velo_track = first_velo_track + p.long_tracks.velo_track[track];
                hlt::kalman_read(hits, i, p.velo_tracks.hits + velo_track * hlt::max_velo_track_hits,
                                 p.velo_hits.x + first_velo_hit, p.velo_hits.y + first_velo_hit,
                                 p.velo_hits.z + first_velo_hit, true);
            }
            hlt::long_fit(hits, field, hlt::long_filter_of(p), velo);
            for (uint32_t i = 0; i < width; ++i) {
                hlt::long_fit_end(field, velo, i, hlt::z_velo_end - velo.z[i], p.module_scattering, 1.f, 1.f);
                hlt::full_start(state, i, velo);
                state.c44[i] = p.start_kink_variance;
            }
        }
        for (uint32_t i = 0; i < width; ++i) {
            line_x[i] = state.x[i];
            line_y[i] = state.y[i];
            line_tx[i] = state.tx[i];
            line_ty[i] = state.ty[i];
            levers.x[i] = levers.x_slope[i] = levers.of_kink[i] = levers.of_kink_slope[i] = 0.f;
            levers.y[i] = levers.y_slope[i] = 0.f;
            places.z[i] = hlt::z_velo_end;
        }

        float n_ut[width], ut_chi2[width];
        {
            float ut_shift[width], ut_slope[width], ut_curve[width];
            for (uint32_t i = 0; i < width; ++i) {
                const uint32_t track = first_track + group + hlt::min_of(i, n_here - 1);
                const hlt::velo_line line{line_x[i], line_y[i], line_tx[i], line_ty[i]};
                const float kink = hlt::full_kink(hlt::track_bend(parameters, line), line, p.long_tracks.tx[track]);
                places.kink[i] = kink;
                ut_shift[i] = hlt::at_slopes(parameters.in_ut_shift, line.tx, line.ty, false)(kink);
                ut_slope[i] = hlt::at_slopes(parameters.in_ut_slope, line.tx, line.ty, false)(kink);
                ut_curve[i] = hlt::at_slopes(parameters.in_ut_curve, line.tx, line.ty, false)(kink);
                const float per_gev = 1e3f * p.long_tracks.qop[track];
                places.inverse_p2[i] = per_gev * per_gev * (1.f + p.oblique * (line.tx * line.tx + line.ty * line.ty));
                n_ut[i] = 0.f;
            }
            for (uint32_t layer = 0; layer < hlt::n_long_ut_layers; ++layer) {
                const float dx_dy = parameters.ut_dx_dy[layer];
                const float plane_z = parameters.ut_z[layer];
                const hlt::full_step step =
                    layer == 0 ? hlt::full_step{true, parameters.noise_before_ut[0], parameters.noise_before_ut[1],
                                                parameters.noise_before_ut[2]}
                               : hlt::full_step{false, 0.f, 0.f, parameters.noise_ut_layer[2]};
                float measured[width], at_z[width], variance[width];
                float present[width];  // 1, or 0 without a hit
                for (uint32_t i = 0; i < width; ++i) {
                    const uint32_t track = first_track + group + hlt::min_of(i, n_here - 1);
                    const uint32_t hit = p.long_tracks.ut_hits[track * hlt::n_long_ut_layers + layer];
                    const bool there = hit != hlt::no_ut_hit;
                    present[i] = there ? 1.f : 0.f;
                    measured[i] = there ? p.ut_hits.x[first_ut_hit + hit] : 0.f;
                    at_z[i] = there ? p.ut_hits.z[first_ut_hit + hit] : plane_z;
                    variance[i] = there ? 1.f / p.ut_hits.weight[first_ut_hit + hit] : 1.f;
                }
                for (uint32_t i = 0; i < width; ++i) {
                    const float from_middle = at_z[i] - hlt::z_middle_of_ut;
                    const hlt::full_lever lever{ut_shift[i] + (ut_slope[i] + ut_curve[i] * from_middle) * from_middle,
                                                ut_slope[i] + 2.f * ut_curve[i] * from_middle};
                    const float dz = at_z[i] - places.z[i];
                    hlt::full_noise noise = hlt::noise_of_step(step, dz, places.inverse_p2[i]);
                    const float lever_error = (layer == 0 ? p.ut_lever_error : 0.f) * places.kink[i];
                    noise.position_x += lever_error * lever_error;
                    hlt::full_predict(state, places, levers, i, at_z[i], lever, lever, {0.f, 0.f}, noise);
                    const float residual = measured[i] + dx_dy * state.y[i] - state.x[i];
                    hlt::low_rank_update(state, i, -dx_dy, variance[i], residual, present[i]);
                    n_ut[i] += present[i];
                }
            }
            for (uint32_t i = 0; i < width; ++i) ut_chi2[i] = state.chi2[i];
        }

        hlt::full_bends bends;
        float n_scifi[width];
        for (uint32_t i = 0; i < width; ++i) {
            const hlt::velo_line line{line_x[i], line_y[i], line_tx[i], line_ty[i]};
            const hlt::track_bend bend(parameters, line);
            const float kink = places.kink[i];
            bends.z_magnet[i] = bend.z_magnet(kink);
            bends.curvature[i] = bend.curvature(kink);
            bends.cubic[i] = bend.cubic(kink);
            bends.z_magnet_of_kink[i] = bends.z_magnet[i] + kink * hlt::derivative(bend.z_magnet, kink);
            bends.curvature_of_kink[i] = bends.curvature[i] + kink * hlt::derivative(bend.curvature, kink);
            bends.cubic_of_kink[i] = bends.cubic[i] + kink * hlt::derivative(bend.cubic, kink);
            bends.y_shift[i] = line.ty * bend.y_shift(kink);
            bends.y_slope[i] = line.ty * bend.y_slope(kink);
            n_scifi[i] = 0.f;
        }
        // One step more than there are layers: to z_end_scifi.
        for (uint32_t layer = 0; layer <= hlt::n_scifi_layers; ++layer) {
            const bool at_end = layer == hlt::n_scifi_layers;
            const float dx_dy = at_end ? 0.f : parameters.layer_dx_dy[layer];
            const float dz_dy = at_end ? 0.f : parameters.layer_dz_dy[layer];
            const float plane_z = at_end ? hlt::z_end_scifi : parameters.layer_z[layer];
            const hlt::full_step step = layer == 0
                                            ? hlt::full_step{true, parameters.noise_magnet[0],
                                                             parameters.noise_magnet[1], parameters.noise_magnet[2]}
                                            : hlt::full_step{false, 0.f, 0.f, p.scifi_layer_slope};
            float measured[width], at_z[width];
            float present[width];
            for (uint32_t i = 0; i < width; ++i) {
                const uint32_t track = first_track + group + hlt::min_of(i, n_here - 1);
                const uint32_t hit = at_end ? static_cast<uint32_t>(hlt::no_scifi_hit)
                                            : p.long_tracks.hits[track * hlt::max_scifi_track_hits + layer];
                const bool there = hit != hlt::no_scifi_hit;
                present[i] = there ? 1.f : 0.f;
                measured[i] = there ? p.scifi_hits.x[first_scifi_hit + hit] : 0.f;
                at_z[i] = there ? p.scifi_hits.z[first_scifi_hit + hit] : plane_z;
            }
            for (uint32_t i = 0; i < width; ++i) {
                const float new_z = at_z[i] + dz_dy * (state.y[i] + (at_z[i] - places.z[i]) * state.ty[i]);
                const hlt::full_lever here =
                    hlt::lever_at(bends.z_magnet[i], bends.curvature[i], bends.cubic[i], new_z);
                const hlt::full_lever here_of_kink =
                    hlt::lever_at(bends.z_magnet_of_kink[i], bends.curvature_of_kink[i], bends.cubic_of_kink[i], new_z);
                const float from_reference = new_z - hlt::z_scifi_reference;
                const hlt::full_lever here_y{bends.y_shift[i] + bends.y_slope[i] * from_reference, bends.y_slope[i]};
                const hlt::full_noise noise = hlt::noise_of_step(step, new_z - places.z[i], places.inverse_p2[i]);
                hlt::full_predict(state, places, levers, i, new_z, here, here_of_kink, here_y, noise);
                const float residual = measured[i] + dx_dy * state.y[i] - state.x[i];
                const float variance = p.scifi_hit_variance + p.scifi_oblique_variance * state.tx[i] * state.tx[i];
                hlt::low_rank_update(state, i, -dx_dy, variance, residual, present[i]);
                n_scifi[i] += present[i];
            }
        }
        for (uint32_t i = 0; i < n_here; ++i) {
            const uint32_t track = first_track + group + i;
            const hlt::velo_line line{line_x[i], line_y[i], line_tx[i], line_ty[i]};
            const float kink = places.kink[i] + state.k[i];
            const hlt::bend_at_kink bend = hlt::track_bend(parameters, line).at(kink);
            const float in_magnet = 1e-3f * parameters.polarity * hlt::s_of(parameters, line, bend);
            const float size = in_magnet < 0.f ? -in_magnet : in_magnet;
            const bool found = size < hlt::full_largest_qop && kink != 0.f;
            const float before_loss = 1.f / (1.f + parameters.energy_loss * size);
            const float of_loss = p.energy_loss_error * size;
            const float relative2 =
                state.c44[i] / (kink * kink) + p.momentum_error * p.momentum_error + of_loss * of_loss;
            const float error = sqrtf(relative2) * size * before_loss * before_loss;
            p.long_tracks.fitted_qop[track] = found ? in_magnet * before_loss : p.long_tracks.qop[track];
            p.long_tracks.qop_error[track] = found ? error : hlt::full_largest_qop;
            const float n = n_ut[i] + n_scifi[i];
            p.long_tracks.full_chi2[track] = n > 1.f ? state.chi2[i] / (n - 1.f) : 0.f;
            p.long_tracks.ut_chi2[track] = n_ut[i] > 0.f ? ut_chi2[i] / n_ut[i] : 0.f;
            p.long_tracks.end_x[track] = state.x[i];
            p.long_tracks.end_y[track] = state.y[i];
            p.long_tracks.end_tx[track] = state.tx[i];
            p.long_tracks.end_ty[track] = state.ty[i];
            p.long_tracks.end_c00[track] = state.c00[i];
            p.long_tracks.end_c20[track] = state.c20[i];
            p.long_tracks.end_c22[track] = state.c22[i];
            p.long_tracks.end_c11[track] = state.c11[i];
            p.long_tracks.end_c31[track] = state.c31[i];
            p.long_tracks.end_c33[track] = state.c33[i];
        }
    }
}
