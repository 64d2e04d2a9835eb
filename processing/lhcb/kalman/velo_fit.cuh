// Kalman fit of the VELO part of long tracks with their momentum: the state closest to the beam line
// (docs/physics/long-kalman-filter.md).
//
// One block per event, one thread per track; on the CPU a thread takes `kalman_width` tracks at once, one per lane of a
// vector register. A lane computes exactly what a thread of a GPU computes.
//
// From the hit with the largest z towards the beam line; x and y are filtered independently. Unlike the filter of VELO
// tracks (lhcb/velo/tracking/kalman_filter.cuh), multiple scattering is known from the momentum and differs between x
// and y, and the field is allowed for: the bend from z = 0 on is taken off the hits, and put back where the fit ends.
// Bounds: tracks of an event as long_tracks.count; at most max_velo_track_hits hits on a track.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/kalman/generated/kalman_velo_fit.h"
#include "lhcb/kalman/velo_bend.cuh"
#include "lhcb/velo/tracking/track_hits.cuh"

namespace hlt {

constexpr float long_hit_variance = 0.0125f * 0.0125f;  // mm^2
constexpr float long_start_slope_variance = 0.01f;

// Variance of the angle of scattering in a layer, at normal incidence, times p^2: MeV^2.
constexpr float long_scattering_module = 1.48f;
constexpr float long_scattering_foil = 0.6f;        // more for a hit whose path has crossed the RF foil
constexpr float long_scattering_beam_line = 2.91f;  // between the first module and the beam line

// The material of a step is no thin layer: with s, the noise of the slope, that of (position, slope) behind the step is
// s (a dz^2, b dz, 1). Moved to the begin of the step it is s ((a - 2 b + 1) dz^2, (b - 1) dz, 1).
constexpr float long_step_a = 0.643f * 0.643f;
constexpr float long_step_b = 0.526f;
constexpr float long_beam_line_a = 0.808f * 0.808f;
constexpr float long_beam_line_b = 0.793f;

constexpr float long_max_inverse_momentum = 0.1f;  // 1/MeV; a track whose q/p is no number scatters so and is not bent

/// One coordinate of a state, position and slope, with covariance.
struct long_fit_line {
    float x[kalman_width];
    float t[kalman_width];
    float c00[kalman_width];
    float c20[kalman_width];
    float c22[kalman_width];
};

struct long_fit_state {
    long_fit_line x;
    long_fit_line y;
    float z[kalman_width];
    float chi2[kalman_width];
    float inverse_p2[kalman_width];
    float qop[kalman_width];
};

__device__ void long_fit_start(long_fit_line& line, uint32_t i, float position, float slope)
{
    line.x[i] = position;
    line.t[i] = slope;
    line.c00[i] = long_hit_variance;
    line.c20[i] = 0.f;
    line.c22[i] = long_start_slope_variance;
}

/// Predict over dz with noise `s` and update with a measured position, where `there`. Returns the gain of chi2.
/// The noise is moved to the begin of the step, so that the update of the covariance (docs/physics/kalman-filter.md)
/// never subtracts nearly equal numbers.
__device__ float long_fit_step(long_fit_line& line, uint32_t i, float dz, float s, float measured, bool there)
{
    const float s_dz = s * dz;
    const float c00 = line.c00[i] + (long_step_a - 2.f * long_step_b + 1.f) * (s_dz * dz);
    const float c20 = line.c20[i] + (long_step_b - 1.f) * s_dz;
    const float c22 = line.c22[i] + s;
    const float predicted_c20 = c20 + dz * c22;
    const float predicted_c00 = c00 + dz * (c20 + predicted_c20);
    const float inverse = 1.f / (long_hit_variance + predicted_c00);
    const float gain = predicted_c00 * inverse;
    const float slope_gain = predicted_c20 * inverse;
    const float predicted = line.x[i] + dz * line.t[i];
    const float residual = measured - predicted;
    line.x[i] = there ? predicted + gain * residual : line.x[i];
    line.t[i] = there ? line.t[i] + slope_gain * residual : line.t[i];
    line.c00[i] = there ? long_hit_variance * gain : line.c00[i];
    line.c20[i] = there ? long_hit_variance * slope_gain : line.c20[i];
    line.c22[i] = there ? inverse * (c22 * (long_hit_variance + c00) - c20 * c20) : line.c22[i];
    return there ? residual * residual * inverse : 0.f;
}

/// To the beam line, over dz, with noise `s`.
__device__ void long_fit_move(long_fit_line& line, uint32_t i, float dz, float s)
{
    const float moved_c20 = line.c20[i] + dz * line.c22[i];
    line.x[i] += dz * line.t[i];
    line.c00[i] += dz * (line.c20[i] + moved_c20) + long_beam_line_a * (s * dz * dz);
    line.c20[i] = moved_c20 + long_beam_line_b * (s * dz);
    line.c22[i] += s;
}

/// p^2 times variance of the angle of scattering becomes that of a slope t: (1 + t^2) (1 + tx^2 + ty^2)^1.5.
__device__ float long_fit_obliquity(float tx, float ty)
{
    const float n2 = 1.f + tx * tx + ty * ty;
    return n2 * sqrtf(n2);
}

/// Whether a particle from the beam line has crossed the RF foil just before this hit: hits in the inner corners of the
/// modules, which are open squares turned by 45 degrees.
__device__ bool long_fit_behind_foil(float x, float y)
{
    const float u = x + y;
    const float v = y - x;
    return ((v > -15.f) & (u >= 0.f) & (u < 15.f)) | ((v < 15.f) & (u > -15.f) & (u <= 0.f));
}

/// x of a hit on the track if there were no field.
__device__ float long_fit_unbent(const velo_field& field, float qop, kalman_hit hit)
{
    return hit.x - bend_of_position(field, qop, 0.f, hit.z);
}

__device__ void long_fit(const kalman_hits& hits, const velo_field& field, long_fit_state& state)
{
    for (uint32_t i = 0; i < kalman_width; ++i) {
        const kalman_hit first = hits.at(0, i);
        const kalman_hit last = hits.at(hits.count[i] > 0 ? hits.count[i] - 1 : 0, i);
        const float dz = first.z - last.z;
        const float scale = dz > 0.f ? 1.f / dz : 0.f;
        const float first_x = long_fit_unbent(field, state.qop[i], first);
        long_fit_start(state.x, i, first_x, (first_x - long_fit_unbent(field, state.qop[i], last)) * scale);
        long_fit_start(state.y, i, first.y, (first.y - last.y) * scale);
        state.z[i] = first.z;
        state.chi2[i] = 0.f;
    }
    for (uint32_t k = 1; k < hits.rows; ++k) {
        for (uint32_t i = 0; i < kalman_width; ++i) {
            const kalman_hit hit = hits.at(k, i);
            const bool there = hits.has(k, i);
            const float dz = hit.z - state.z[i];
            const float tx = state.x.t[i], ty = state.y.t[i];
            const float layer =
                long_scattering_module + (long_fit_behind_foil(hit.x, hit.y) ? long_scattering_foil : 0.f);
            const float variance = layer * state.inverse_p2[i] * long_fit_obliquity(tx, ty);
            const float x = long_fit_unbent(field, state.qop[i], hit);
            state.chi2[i] += long_fit_step(state.x, i, dz, (1.f + tx * tx) * variance, x, there);
            state.chi2[i] += long_fit_step(state.y, i, dz, (1.f + ty * ty) * variance, hit.y, there);
            state.z[i] = there ? hit.z : state.z[i];
        }
    }
}

}  // namespace hlt

HLT_KERNEL(kalman_velo_fit)
{
    if (!p.takes(blockIdx.x)) return;
    constexpr uint32_t width = hlt::kalman_width;

    const uint32_t first_hit = p.velo_hits.first(blockIdx.x);
    const uint32_t first_velo_track = p.velo_tracks.first(blockIdx.x);
    const uint32_t first_track = p.long_tracks.first(blockIdx.x);
    const uint32_t n_tracks = p.long_tracks.count[blockIdx.x];
    const float* hit_x = p.velo_hits.x + first_hit;
    const float* hit_y = p.velo_hits.y + first_hit;
    const float* hit_z = p.velo_hits.z + first_hit;
    const float beamline_x = p.velo_geometry->beamline_x;
    const float beamline_y = p.velo_geometry->beamline_y;
    const hlt::velo_field field = *p.velo_field;

    for (uint32_t group = threadIdx.x * width; group < n_tracks; group += blockDim.x * width) {
        const uint32_t n_here = hlt::min_of(width, n_tracks - group);
        uint32_t velo_track[width];
        hlt::kalman_hits hits;
        hlt::long_fit_state state;
        hits.rows = 1;
        for (uint32_t i = 0; i < width; ++i) {
            const uint32_t track = first_track + group + hlt::min_of(i, n_here - 1);
            velo_track[i] = first_velo_track + p.long_tracks.velo_track[track];
            hits.count[i] = i < n_here ? p.velo_tracks.hit_count[velo_track[i]] : 0;
            hits.rows = hlt::max_of(hits.rows, hits.count[i]);
            const float qop = p.long_tracks.fitted_qop[track];
            const float inverse = qop < 0.f ? -qop : qop;
            const float bounded = inverse < hlt::long_max_inverse_momentum ? inverse : hlt::long_max_inverse_momentum;
            state.inverse_p2[i] = bounded * bounded;
            state.qop[i] = inverse < hlt::long_max_inverse_momentum ? qop : 0.f;
        }
        for (uint32_t i = 0; i < width; ++i)
            hlt::kalman_read(hits, i, p.velo_tracks.hits + velo_track[i] * hlt::max_velo_track_hits, hit_x, hit_y,
                             hit_z);
        hlt::long_fit(hits, field, state);

        for (uint32_t i = 0; i < width; ++i) {
            const float tx = state.x.t[i], ty = state.y.t[i];
            const float slope2 = tx * tx + ty * ty;
            const float towards = tx * (beamline_x - state.x.x[i]) + ty * (beamline_y - state.y.x[i]);
            const float dz = slope2 > 0.f ? towards / slope2 : 0.f;
            const float variance =
                hlt::long_scattering_beam_line * state.inverse_p2[i] * hlt::long_fit_obliquity(tx, ty);
            hlt::long_fit_move(state.x, i, dz, (1.f + tx * tx) * variance);
            hlt::long_fit_move(state.y, i, dz, (1.f + ty * ty) * variance);
            state.z[i] += dz;
            state.x.x[i] += hlt::bend_of_position(field, state.qop[i], 0.f, state.z[i]);
            state.x.t[i] += hlt::bend_of_slope(field, state.qop[i], 0.f, state.z[i]);
        }

        for (uint32_t i = 0; i < n_here; ++i) {
            const uint32_t track = first_track + group + i;
            p.long_tracks.beam_x[track] = state.x.x[i];
            p.long_tracks.beam_y[track] = state.y.x[i];
            p.long_tracks.beam_z[track] = state.z[i];
            p.long_tracks.beam_tx[track] = state.x.t[i];
            p.long_tracks.beam_ty[track] = state.y.t[i];
            p.long_tracks.beam_qop[track] = p.long_tracks.fitted_qop[track];
            p.long_tracks.beam_c00[track] = state.x.c00[i];
            p.long_tracks.beam_c20[track] = state.x.c20[i];
            p.long_tracks.beam_c22[track] = state.x.c22[i];
            p.long_tracks.beam_c11[track] = state.y.c00[i];
            p.long_tracks.beam_c31[track] = state.y.c20[i];
            p.long_tracks.beam_c33[track] = state.y.c22[i];
            const float freedom = 2.f * static_cast<float>(hits.count[i]) - 4.f;
            p.long_tracks.chi2[track] = freedom > 0.f ? state.chi2[i] / freedom : 0.f;
        }
    }
}
