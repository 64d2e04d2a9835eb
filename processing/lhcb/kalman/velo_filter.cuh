// A filter of the VELO hits of long tracks with their momentum (docs/physics/long-kalman-filter.md).
//
// From the first to the last hit given, in either direction; x and y are filtered independently. Unlike the filter of
// VELO tracks (lhcb/velo/tracking/kalman_filter.cuh), multiple scattering is known from the momentum and differs
// between x and y, and the field is allowed for: the bend from z = 0 on is taken off the hits, and put back where the
// fit ends.
#pragma once

#include "lhcb/kalman/velo_bend.cuh"
#include "lhcb/velo/tracking/track_hits.cuh"

namespace hlt {

/// What the filter assumes of hits and material. The material of a step is no thin layer: with s, the noise of the
/// slope, that of (position, slope) behind the step is s (position dz^2, both dz, 1). Moved to the begin of the step it
/// is s ((position - 2 both + 1) dz^2, (both - 1) dz, 1).
struct long_filter {
    float hit_variance;  // mm^2
    float start_slope_variance;
    float module;  // variance of the angle of scattering at normal incidence, times p^2: MeV^2
    float foil;    // more for a hit whose path has crossed the RF foil
    float step_position;
    float step_both;
};

template <typename P>
__device__ long_filter long_filter_of(const P& p)
{
    return {p.hit_variance,    p.start_slope_variance, p.module_scattering,
            p.foil_scattering, p.step_position,        p.step_both};
}

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
    float qop[kalman_width];  // of the bend
};

/// The momentum of a track, within what scattering may be.
__device__ void long_fit_momentum(long_fit_state& state, uint32_t i, float qop)
{
    const float inverse = qop < 0.f ? -qop : qop;
    const float bounded = inverse < long_max_inverse_momentum ? inverse : long_max_inverse_momentum;
    state.inverse_p2[i] = bounded * bounded;
    state.qop[i] = inverse < long_max_inverse_momentum ? qop : 0.f;
}

__device__ void long_fit_start(const long_filter& filter, long_fit_line& line, uint32_t i, float position, float slope)
{
    line.x[i] = position;
    line.t[i] = slope;
    line.c00[i] = filter.hit_variance;
    line.c20[i] = 0.f;
    line.c22[i] = filter.start_slope_variance;
}

/// Predict over dz with noise `s` and update with a measured position, where `there`. Returns the gain of chi2.
/// The noise is moved to the begin of the step, so that the update of the covariance (docs/physics/kalman-filter.md)
/// never subtracts nearly equal numbers.
__device__ float long_fit_step(const long_filter& filter, long_fit_line& line, uint32_t i, float dz, float s,
                               float measured, bool there)
{
    const float s_dz = s * dz;
    const float c00 = line.c00[i] + (filter.step_position - 2.f * filter.step_both + 1.f) * (s_dz * dz);
    const float c20 = line.c20[i] + (filter.step_both - 1.f) * s_dz;
    const float c22 = line.c22[i] + s;
    const float predicted_c20 = c20 + dz * c22;
    const float predicted_c00 = c00 + dz * (c20 + predicted_c20);
    const float inverse = 1.f / (filter.hit_variance + predicted_c00);
    const float gain = predicted_c00 * inverse;
    const float slope_gain = predicted_c20 * inverse;
    const float predicted = line.x[i] + dz * line.t[i];
    const float residual = measured - predicted;
    line.x[i] = there ? predicted + gain * residual : line.x[i];
    line.t[i] = there ? line.t[i] + slope_gain * residual : line.t[i];
    line.c00[i] = there ? filter.hit_variance * gain : line.c00[i];
    line.c20[i] = there ? filter.hit_variance * slope_gain : line.c20[i];
    line.c22[i] = there ? inverse * (c22 * (filter.hit_variance + c00) - c20 * c20) : line.c22[i];
    return there ? residual * residual * inverse : 0.f;
}

/// Over dz, with noise s (position dz^2, both dz, 1) of (position, slope).
__device__ void long_fit_move(long_fit_line& line, uint32_t i, float dz, float s, float position, float both)
{
    const float moved_c20 = line.c20[i] + dz * line.c22[i];
    line.x[i] += dz * line.t[i];
    line.c00[i] += dz * (line.c20[i] + moved_c20) + position * (s * dz * dz);
    line.c20[i] = moved_c20 + both * (s * dz);
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

/// `scattering` (p^2 times variance of the angle) over dz, and then the bend of the field to there.
__device__ void long_fit_end(const velo_field& field, long_fit_state& state, uint32_t i, float dz, float scattering,
                             float position, float both)
{
    const float tx = state.x.t[i], ty = state.y.t[i];
    const float variance = scattering * state.inverse_p2[i] * long_fit_obliquity(tx, ty);
    long_fit_move(state.x, i, dz, (1.f + tx * tx) * variance, position, both);
    long_fit_move(state.y, i, dz, (1.f + ty * ty) * variance, position, both);
    state.z[i] += dz;
    state.x.x[i] += bend_of_position(field, state.qop[i], 0.f, state.z[i]);
    state.x.t[i] += bend_of_slope(field, state.qop[i], 0.f, state.z[i]);
}

__device__ void long_fit(const kalman_hits& hits, const velo_field& field, const long_filter& filter,
                         long_fit_state& state)
{
    for (uint32_t i = 0; i < kalman_width; ++i) {
        const kalman_hit first = hits.at(0, i);
        const kalman_hit last = hits.at(hits.count[i] > 0 ? hits.count[i] - 1 : 0, i);
        const float dz = first.z - last.z;
        const float scale = dz != 0.f ? 1.f / dz : 0.f;
        const float first_x = long_fit_unbent(field, state.qop[i], first);
        long_fit_start(filter, state.x, i, first_x, (first_x - long_fit_unbent(field, state.qop[i], last)) * scale);
        long_fit_start(filter, state.y, i, first.y, (first.y - last.y) * scale);
        state.z[i] = first.z;
        state.chi2[i] = 0.f;
    }
    for (uint32_t k = 1; k < hits.rows; ++k) {
        for (uint32_t i = 0; i < kalman_width; ++i) {
            const kalman_hit hit = hits.at(k, i);
            const bool there = hits.has(k, i);
            const float dz = hit.z - state.z[i];
            const float tx = state.x.t[i], ty = state.y.t[i];
            const float layer = filter.module + (long_fit_behind_foil(hit.x, hit.y) ? filter.foil : 0.f);
            const float variance = layer * state.inverse_p2[i] * long_fit_obliquity(tx, ty);
            const float x = long_fit_unbent(field, state.qop[i], hit);
            state.chi2[i] += long_fit_step(filter, state.x, i, dz, (1.f + tx * tx) * variance, x, there);
            state.chi2[i] += long_fit_step(filter, state.y, i, dz, (1.f + ty * ty) * variance, hit.y, there);
            state.z[i] = there ? hit.z : state.z[i];
        }
    }
}

}  // namespace hlt
