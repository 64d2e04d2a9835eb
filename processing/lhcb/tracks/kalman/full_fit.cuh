// Kalman fit of long tracks through VELO, UT, magnet and SciFi: q/p, its error, chi2, and the state behind the last hit
// (docs/physics/long-kalman-filter.md).
//
// One block per event, one thread per track.
//
// The VELO hits are filtered with the momentum of the long tracking (velo_filter.cuh), from the beam line outwards.
// Behind them the kink of the parametrisation of the magnet bends the track (lhcb/tracks/long/bend.cuh). A track is
// linear in the kink, except for the slow change of the functions: x(z) = line + kink lever(z), linear about the kink
// from the long tracking. So the filter of five parameters (low_rank.cuh) needs no steps through the field. Each UT and
// SciFi hit measures x along its strip or fibre.
// Bounds: tracks of an event as long_tracks.count; max_velo_track_hits, n_long_ut_layers and n_scifi_layers hits on a
// track.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/scifi/generated/scifi_types.h"
#include "lhcb/tracks/kalman/generated/kalman_full_fit.h"
#include "lhcb/tracks/kalman/long_track.cuh"
#include "lhcb/tracks/kalman/low_rank.cuh"
#include "lhcb/tracks/kalman/velo_filter.cuh"
#include "lhcb/tracks/long/bend.cuh"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

constexpr float full_largest_qop = 0.01f;  // 1/MeV; a fit with a larger result, or a NaN, has failed

// `Real`: float for one track, or a vector of floats with one track in each lane.

/// x, or y, minus the straight line from the VELO, divided by the kink; and its slope.
template <typename Real>
struct full_lever {
    Real value;
    Real slope;
};

/// The levers at the z of a state: of x, of its change with the kink (the derivative of kink times lever), of y.
template <typename Real>
struct full_levers {
    Real x, x_slope;
    Real of_kink, of_kink_slope;
    Real y, y_slope;
};

template <typename Real>
__device__ Real derivative(const bend_polynomial_of<Real>& f, const Real& bend)
{
    return f.a[1] + bend * (2.f * f.a[2] + bend * (3.f * f.a[3] + bend * (4.f * f.a[4])));
}

/// A track in the SciFi: its functions at the kink about which it is linear. `of_kink`: change with the
/// kink.
template <typename Real>
struct full_bends {
    Real z_magnet, curvature, cubic;
    Real z_magnet_of_kink, curvature_of_kink, cubic_of_kink;
    Real y_shift, y_slope;  // with ty

    __device__ full_bends(const track_bend_of<Real>& bend, const velo_line_of<Real>& line, const Real& kink)
        : z_magnet(bend.z_magnet(kink)),
          curvature(bend.curvature(kink)),
          cubic(bend.cubic(kink)),
          z_magnet_of_kink(z_magnet + kink * derivative(bend.z_magnet, kink)),
          curvature_of_kink(curvature + kink * derivative(bend.curvature, kink)),
          cubic_of_kink(cubic + kink * derivative(bend.cubic, kink)),
          y_shift(line.ty * bend.y_shift(kink)),
          y_slope(line.ty * bend.y_slope(kink))
    {
    }
};

/// The position of a track, and its momentum for the scattering.
template <typename Real>
struct full_places {
    Real kink;
    Real z;
    Real inverse_p2;  // 1/GeV^2, includes the oblique path through the material
};

/// The material of a step, for 1 GeV. For a thin layer at the start of the step the variance of the slope is
/// sufficient.
struct full_step {
    bool is_thick;
    float position, both, slope;
};

/// Noise of a step, position and slope of x, and of y.
template <typename Real>
struct full_noise {
    Real position_x, position_y, both, slope;
};

template <typename Real>
__device__ __forceinline__ full_lever<Real> lever_at(const Real& z_magnet, const Real& curvature, const Real& cubic,
                                                     const Real& z)
{
    const Real dz = z - z_scifi_reference;
    return {z - z_magnet + (curvature + cubic * dz) * dz * dz, 1.f + (2.f * curvature + 3.f * cubic * dz) * dz};
}

/// The change of a lever over a step: of the position beyond the extrapolation with the slope, and of the slope.
template <typename Real>
__device__ __forceinline__ full_lever<Real> change_of(const full_lever<Real>& before, const full_lever<Real>& behind,
                                                      const Real& dz)
{
    return {behind.value - before.value - before.slope * dz, behind.slope - before.slope};
}

template <typename Real>
__device__ __forceinline__ full_noise<Real> noise_of_step(const full_step& step, const Real& dz, const Real& inverse_p2)
{
    const Real position = (step.is_thick ? Real{} + step.position : step.slope * dz * dz) * inverse_p2;
    const Real both = (step.is_thick ? Real{} + step.both : step.slope * dz) * inverse_p2;
    return {position, position, both, step.slope * inverse_p2};
}

/// Predict to new_z, where the levers are x, of_kink and y.
template <typename Real>
__device__ __forceinline__ void full_predict(low_rank_state<Real>& state, full_places<Real>& places,
                                             full_levers<Real>& levers, const Real& new_z, const full_lever<Real>& x,
                                             const full_lever<Real>& of_kink, const full_lever<Real>& y,
                                             const full_noise<Real>& noise)
{
    const Real dz = new_z - places.z;
    const Real kink = places.kink;
    const full_lever<Real> change = change_of<Real>({levers.x, levers.x_slope}, x, dz);
    const full_lever<Real> change_of_kink = change_of<Real>({levers.of_kink, levers.of_kink_slope}, of_kink, dz);
    const full_lever<Real> change_y = change_of<Real>({levers.y, levers.y_slope}, y, dz);
    low_rank_predict<Real>(state, dz,
                           {change_of_kink.value, change_of_kink.slope, noise.position_x, noise.both, noise.slope},
                           {change_y.value, change_y.slope, noise.position_y, noise.both, noise.slope});
    state.x += kink * change.value;
    state.tx += kink * change.slope;
    state.y += kink * change_y.value;
    state.ty += kink * change_y.slope;
    levers.x = x.value;
    levers.x_slope = x.slope;
    levers.of_kink = of_kink.value;
    levers.of_kink_slope = of_kink.slope;
    levers.y = y.value;
    levers.y_slope = y.slope;
    places.z = new_z;
}

/// The initial state behind the VELO: the line from the filter of its hits.
template <typename Real>
__device__ void full_start(low_rank_state<Real>& state, const long_fit_state<Real>& velo)
{
    state.x = velo.x.x;
    state.y = velo.y.x;
    state.tx = velo.x.t;
    state.ty = velo.y.t;
    state.c00 = velo.x.c00;
    state.c20 = velo.x.c20;
    state.c22 = velo.x.c22;
    state.c11 = velo.y.c00;
    state.c31 = velo.y.c20;
    state.c33 = velo.y.c22;
    state.k = Real{};  // kink minus the kink of the linearisation
    state.c10 = state.c21 = state.c30 = state.c32 = Real{};
    state.c40 = state.c41 = state.c42 = state.c43 = Real{};
    state.chi2 = Real{};
}

/// The kink of a track with the slope tx_end at z_end_scifi.
template <typename Real>
__device__ Real full_kink(const track_bend_of<Real>& bend, const velo_line_of<Real>& line, const Real& tx_end)
{
    const float dz = z_end_scifi - z_scifi_reference;
    const Real behind = tx_end - line.tx;
    Real kink = behind;
    for (uint32_t turn = 0; turn < 2; ++turn)
        kink = behind / (1.f + (2.f * bend.curvature(kink) + 3.f * bend.cubic(kink) * dz) * dz);
    return kink;
}

/// Fit some tracks and write the results; `hits` has their VELO hits from the beam line outwards. `p`: the parameters
/// of the kernel.
template <typename Real, typename Parameters, typename Tracks, typename Hits>
__device__ void fit_long_tracks(const Parameters& p, uint32_t event, const Tracks& tracks, const Hits& hits)
{
    const long_track_parameters& parameters = *p.long_track_parameters;
    const velo_field field = *p.velo_field;
    const uint32_t first_ut_hit = p.ut_hits.first(event), first_scifi_hit = p.scifi_hits.first(event);
    const Real none{};
    const Real qop = tracks.of(p.long_tracks.qop);
    low_rank_state<Real> state;
    {
        long_fit_state<Real> velo;
        long_fit_momentum(velo, qop);
        long_fit(hits, field, long_filter_of(p), velo);
        long_fit_end<Real>(field, velo, z_velo_end - velo.z, p.module_scattering, 1.f, 1.f);
        full_start(state, velo);
        state.c44 = none + p.start_kink_variance;
    }
    const velo_line_of<Real> line{state.x, state.y, state.tx, state.ty};  // at z_velo_end
    full_levers<Real> levers{none, none, none, none, none, none};
    full_places<Real> places;
    places.z = none + z_velo_end;
    const Real kink = full_kink<Real>(track_bend_of<Real>(parameters, line), line, tracks.of(p.long_tracks.tx));
    places.kink = kink;
    const Real per_gev = 1e3f * qop;
    places.inverse_p2 = per_gev * per_gev * (1.f + p.oblique * (line.tx * line.tx + line.ty * line.ty));

    Real n_ut{};
    {
        const Real shift = at_slopes(parameters.in_ut_shift, line.tx, line.ty, false)(kink);
        const Real slope = at_slopes(parameters.in_ut_slope, line.tx, line.ty, false)(kink);
        const Real curve = at_slopes(parameters.in_ut_curve, line.tx, line.ty, false)(kink);
        for (uint32_t layer = 0; layer < n_long_ut_layers; ++layer) {
            const float dx_dy = parameters.ut_dx_dy[layer];
            const float plane_z = parameters.ut_z[layer];
            const full_step step = layer == 0 ? full_step{true, parameters.noise_before_ut[0],
                                                          parameters.noise_before_ut[1], parameters.noise_before_ut[2]}
                                              : full_step{false, 0.f, 0.f, parameters.noise_ut_layer[2]};
            const auto hit_of = [&](uint32_t track) -> uint32_t {
                return p.long_tracks.ut_hits[track * n_long_ut_layers + layer];
            };
            const auto of_hit = [&](const float* column, float otherwise) {
                return tracks.each([&](uint32_t track) {
                    const uint32_t hit = hit_of(track);
                    return hit != no_ut_hit ? column[first_ut_hit + hit] : otherwise;
                });
            };
            const Real present = tracks.each([&](uint32_t track) { return hit_of(track) != no_ut_hit ? 1.f : 0.f; });
            const Real measured = of_hit(p.ut_hits.x, 0.f), at_z = of_hit(p.ut_hits.z, plane_z);
            const Real variance = 1.f / of_hit(p.ut_hits.weight, 1.f);
            const Real from_middle = at_z - z_middle_of_ut;
            const full_lever<Real> lever{shift + (slope + curve * from_middle) * from_middle,
                                         slope + 2.f * curve * from_middle};
            full_noise<Real> noise = noise_of_step<Real>(step, at_z - places.z, places.inverse_p2);
            const Real lever_error = (layer == 0 ? p.ut_lever_error : 0.f) * kink;
            noise.position_x += lever_error * lever_error;
            full_predict<Real>(state, places, levers, at_z, lever, lever, {none, none}, noise);
            const Real residual = measured + dx_dy * state.y - state.x;
            low_rank_update(state, -dx_dy, variance, residual, present);
            n_ut += present;
        }
    }
    const Real ut_chi2 = state.chi2;

    const full_bends<Real> bends(track_bend_of<Real>(parameters, line), line, kink);
    Real n_scifi{};
    // One more step than layers: to z_end_scifi.
    for (uint32_t layer = 0; layer <= n_scifi_layers; ++layer) {
        const bool at_end = layer == n_scifi_layers;
        const float dx_dy = at_end ? 0.f : parameters.layer_dx_dy[layer];
        const float dz_dy = at_end ? 0.f : parameters.layer_dz_dy[layer];
        const float plane_z = at_end ? z_end_scifi : parameters.layer_z[layer];
        const full_step step = layer == 0 ? full_step{true, parameters.noise_magnet[0], parameters.noise_magnet[1],
                                                      parameters.noise_magnet[2]}
                                          : full_step{false, 0.f, 0.f, p.scifi_layer_slope};
        const auto hit_of = [&](uint32_t track) -> uint32_t {
            return at_end ? static_cast<uint32_t>(no_scifi_hit)
                          : p.long_tracks.hits[track * max_scifi_track_hits + layer];
        };
        const auto of_hit = [&](const float* column, float otherwise) {
            return tracks.each([&](uint32_t track) {
                const uint32_t hit = hit_of(track);
                return hit != no_scifi_hit ? column[first_scifi_hit + hit] : otherwise;
            });
        };
        const Real present = tracks.each([&](uint32_t track) { return hit_of(track) != no_scifi_hit ? 1.f : 0.f; });
        const Real measured = of_hit(p.scifi_hits.x, 0.f), at_z = of_hit(p.scifi_hits.z, plane_z);
        const Real new_z = at_z + dz_dy * (state.y + (at_z - places.z) * state.ty);
        const full_lever<Real> here = lever_at<Real>(bends.z_magnet, bends.curvature, bends.cubic, new_z);
        const full_lever<Real> here_of_kink =
            lever_at<Real>(bends.z_magnet_of_kink, bends.curvature_of_kink, bends.cubic_of_kink, new_z);
        const Real from_reference = new_z - z_scifi_reference;
        const full_lever<Real> here_y{bends.y_shift + bends.y_slope * from_reference, bends.y_slope};
        const full_noise<Real> noise = noise_of_step<Real>(step, new_z - places.z, places.inverse_p2);
        full_predict<Real>(state, places, levers, new_z, here, here_of_kink, here_y, noise);
        const Real residual = measured + dx_dy * state.y - state.x;
        const Real variance = p.scifi_hit_variance + p.scifi_oblique_variance * state.tx * state.tx;
        low_rank_update(state, -dx_dy, variance, residual, present);
        n_scifi += present;
    }

    const Real found_kink = kink + state.k;
    const Real in_magnet =
        1e-3f * parameters.polarity * s_of(parameters, line, track_bend_of<Real>(parameters, line).at(found_kink));
    const Real size = in_magnet < 0.f ? -in_magnet : in_magnet;
    const auto found = (size < full_largest_qop) & (found_kink != 0.f);
    const Real before_loss = 1.f / (1.f + parameters.energy_loss * size);
    const Real of_loss = p.energy_loss_error * size;
    const Real relative2 =
        state.c44 / (found_kink * found_kink) + p.momentum_error * p.momentum_error + of_loss * of_loss;
    const Real error = square_root(relative2) * size * before_loss * before_loss;
    tracks.put(p.long_tracks.fitted_qop, found ? in_magnet * before_loss : qop);
    tracks.put(p.long_tracks.qop_error, found ? error : none + full_largest_qop);
    const Real n = n_ut + n_scifi;
    tracks.put(p.long_tracks.full_chi2, n > 1.f ? state.chi2 / (n - 1.f) : none);
    tracks.put(p.long_tracks.ut_chi2, n_ut > 0.f ? ut_chi2 / n_ut : none);
    tracks.put(p.long_tracks.end_x, state.x);
    tracks.put(p.long_tracks.end_y, state.y);
    tracks.put(p.long_tracks.end_tx, state.tx);
    tracks.put(p.long_tracks.end_ty, state.ty);
    tracks.put(p.long_tracks.end_c00, state.c00);
    tracks.put(p.long_tracks.end_c20, state.c20);
    tracks.put(p.long_tracks.end_c22, state.c22);
    tracks.put(p.long_tracks.end_c11, state.c11);
    tracks.put(p.long_tracks.end_c31, state.c31);
    tracks.put(p.long_tracks.end_c33, state.c33);
}

}  // namespace hlt

HLT_KERNEL(kalman_full_fit)
{
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const uint32_t first_track = p.long_tracks.first(event), n_tracks = p.long_tracks.count[event];
    for (uint32_t track = first_track + threadIdx.x; track < first_track + n_tracks; track += blockDim.x)
        hlt::fit_long_tracks<float>(p, event, hlt::one_long_track{track}, hlt::velo_hits_of(p, event, track, true));
}
