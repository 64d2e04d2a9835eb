// Smoothed states of long tracks at their VELO hits: forward filter, backward filter and their average
// (docs/physics/smoothed-states.md; D. H. Campora Perez, O. Awile, Concurrency and Computation 30 (2018) e4483).
//
// One block per event; threads stride over tracks, one thread per track. x and y are filtered independently, as in
// velo_filter.cuh. The forward filter goes in the direction of flight, from the smallest z; it leaves its prediction at
// each hit in the place of the result. The backward filter comes back, and averages its own prediction with the one
// that it finds. The average of both predictions is the best estimate without the measurement of the hit: it gives the
// unbiased residual. With the measurement it becomes the smoothed state, equal to the average of the forward-updated
// and the backward-predicted state. In this order no nearly equal numbers are subtracted.
//
// The noise of a step is that of the straight line from the first to the last hit, so that both filters use the same.
// Bounds: tracks of an event as long_tracks.count; at most max_velo_track_hits hits on a track; at most
// max_smoothed_states states of an event, else the event is flagged and its first tracks are kept.
#pragma once

#include "framework/device/raw_banks.cuh"
#include "lhcb/tracks/kalman/generated/kalman_smooth_velo.h"
#include "lhcb/tracks/kalman/velo_filter.cuh"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

// `Real`: float for one track, or a vector of floats with one track in each lane.

/// One coordinate at a hit, estimated without the measurement of this hit. `determinant` of the covariance: the
/// transport does not change it, so it comes from the numbers before the transport, which are less correlated.
template <typename Real>
struct line_estimate {
    long_fit_line<Real> line;
    Real determinant;
};

/// One coordinate at a hit, with its measurement, and the residual and chi2 of the measurement against the estimate.
template <typename Real>
struct measured_line {
    long_fit_line<Real> line;
    Real residual;
    Real chi2;
};

/// A hit: x without the field, y, z, and the material in front of it (p^2 times the variance of the angle).
template <typename Real>
struct smoothing_hit {
    Real x, y, z;
    Real material;
};

/// What does not change along a track: q/p of its bend, slopes of the filters' first states, and the variance of both
/// slopes for material of 1 MeV^2.
template <typename Real>
struct smoothing_track {
    Real qop;
    Real tx, ty;
    Real scattering_x, scattering_y;
};

template <typename Real>
__device__ smoothing_hit<Real> smoothing_hit_of(const velo_field& field, const long_filter& filter, const Real& qop,
                                                const velo_hit_of_track<Real>& hit)
{
    const Real none{};
    return {long_fit_unbent(field, qop, hit), hit.y, hit.z,
            filter.module + (long_fit_behind_foil(hit.x, hit.y) ? none + filter.foil : none)};
}

template <typename Real>
__device__ smoothing_track<Real> smoothing_track_of(const Real& qop, const smoothing_hit<Real>& first,
                                                    const smoothing_hit<Real>& last, const Real& inverse_p2)
{
    const Real dz = last.z - first.z, none{};
    const Real scale = dz != 0.f ? 1.f / dz : none;
    const Real tx = (last.x - first.x) * scale, ty = (last.y - first.y) * scale;
    const Real both = inverse_p2 * long_fit_obliquity(tx, ty);
    return {qop, tx, ty, (1.f + tx * tx) * both, (1.f + ty * ty) * both};
}

/// Predict over dz with the noise `s` of the slope; the noise of (position, slope) at the start of the step is
/// s (position dz^2, both dz, 1).
template <typename Real>
__device__ __forceinline__ line_estimate<Real> smoothing_predict(const long_fit_line<Real>& line, const Real& dz,
                                                                 const Real& s, float position, float both)
{
    const Real s_dz = s * dz;
    const Real c00 = line.c00 + position * (s_dz * dz);
    const Real c20 = line.c20 + both * s_dz;
    const Real c22 = line.c22 + s;
    const Real moved_c20 = c20 + dz * c22;
    return {{line.x + dz * line.t, line.t, c00 + dz * (c20 + moved_c20), moved_c20, c22}, c00 * c22 - c20 * c20};
}

/// The prediction of the forward filter over a step dz.
template <typename Real>
__device__ __forceinline__ line_estimate<Real> predict_forward(const long_filter& filter,
                                                               const long_fit_line<Real>& line, const Real& dz,
                                                               const Real& s)
{
    return smoothing_predict<Real>(line, dz, s, filter.step_position - 2.f * filter.step_both + 1.f,
                                   filter.step_both - 1.f);
}

/// The prediction of the backward filter over the same step, dz < 0. The noise of the step lies at its end, where this
/// filter starts.
template <typename Real>
__device__ __forceinline__ line_estimate<Real> predict_backward(const long_filter& filter,
                                                                const long_fit_line<Real>& line, const Real& dz,
                                                                const Real& s)
{
    return smoothing_predict<Real>(line, dz, s, filter.step_position, -filter.step_both);
}

template <typename Real>
__device__ __forceinline__ measured_line<Real> smoothing_update(float variance, const line_estimate<Real>& without,
                                                                const Real& measured)
{
    const long_fit_line<Real>& line = without.line;
    const Real inverse = 1.f / (variance + line.c00);
    const Real gain = line.c00 * inverse;
    const Real slope_gain = line.c20 * inverse;
    const Real residual = measured - line.x;
    return {{line.x + gain * residual, line.t + slope_gain * residual, variance * gain, variance * slope_gain,
             inverse * (variance * line.c22 + without.determinant)},
            residual,
            residual * residual * inverse};
}

/// The average of two independent estimates, weighted with their inverse covariances. With two numbers in a state the
/// covariance is (C_1 det C_2 + C_2 det C_1) / det(C_1 + C_2). The correlations have opposite signs, since one filter
/// comes from each side, so all sums are of numbers of one sign but for the correlation of the result.
template <typename Real>
__device__ __forceinline__ line_estimate<Real> smoothing_average(const line_estimate<Real>& one,
                                                                 const line_estimate<Real>& other)
{
    const long_fit_line<Real>&a = one.line, &b = other.line;
    const Real mixed = a.c00 * b.c22 + b.c00 * a.c22 - 2.f * (a.c20 * b.c20);
    const Real inverse = 1.f / (one.determinant + other.determinant + mixed);
    const Real of_a = other.determinant * inverse, of_b = one.determinant * inverse;
    const Real dx = b.x - a.x, dt = b.t - a.t;
    const Real c00 = a.c00 + b.c00, c20 = a.c20 + b.c20, c22 = a.c22 + b.c22;
    const Real pull_x = (c22 * dx - c20 * dt) * inverse, pull_t = (c00 * dt - c20 * dx) * inverse;
    // From the more precise estimate on: a filter that has just begun would be corrected by large numbers.
    const auto from_a = a.c00 < b.c00;
    const Real near00 = from_a ? a.c00 : -b.c00, near20 = from_a ? a.c20 : -b.c20, near22 = from_a ? a.c22 : -b.c22;
    return {{(from_a ? a.x : b.x) + (near00 * pull_x + near20 * pull_t),
             (from_a ? a.t : b.t) + (near20 * pull_x + near22 * pull_t), a.c00 * of_a + b.c00 * of_b,
             a.c20 * of_a + b.c20 * of_b, a.c22 * of_a + b.c22 * of_b},
            of_a * one.determinant};
}

/// Leave the predictions of the forward filter in the place of the result.
__device__ void keep_prediction(smoothed_state& place, const line_estimate<float>& x, const line_estimate<float>& y)
{
    place.x = x.line.x;
    place.tx = x.line.t;
    place.c00 = x.line.c00;
    place.c20 = x.line.c20;
    place.c22 = x.line.c22;
    place.residual_x = x.determinant;
    place.y = y.line.x;
    place.ty = y.line.t;
    place.c11 = y.line.c00;
    place.c31 = y.line.c20;
    place.c33 = y.line.c22;
    place.residual_y = y.determinant;
}

__device__ line_estimate<float> kept_x(const smoothed_state& place)
{
    return {{place.x, place.tx, place.c00, place.c20, place.c22}, place.residual_x};
}

__device__ line_estimate<float> kept_y(const smoothed_state& place)
{
    return {{place.y, place.ty, place.c11, place.c31, place.c33}, place.residual_y};
}

/// The measured numbers of a state; the bend of the field is put back.
__device__ void put_smoothed(smoothed_state& place, const velo_field& field, float qop, float z,
                             const measured_line<float>& x, const measured_line<float>& y)
{
    place.x = x.line.x + bend_of_position(field, qop, 0.f, z);
    place.y = y.line.x;
    place.z = z;
    place.tx = x.line.t + bend_of_slope(field, qop, 0.f, z);
    place.ty = y.line.t;
    place.c00 = x.line.c00;
    place.c20 = x.line.c20;
    place.c22 = x.line.c22;
    place.c11 = y.line.c00;
    place.c31 = y.line.c20;
    place.c33 = y.line.c22;
    place.residual_x = x.residual;
    place.residual_y = y.residual;
    place.chi2 = x.chi2 + y.chi2;
}

/// Smooth one track, whose hits `hits` gives in the direction of flight, into hits.rows places.
__device__ void smooth_track(const velo_field& field, const long_filter& filter, float track_qop,
                             const velo_hits_of_track& hits, smoothed_state* states)
{
    long_fit_state<float> momentum;
    long_fit_momentum(momentum, track_qop);
    const float qop = momentum.qop, w = filter.hit_variance;
    const uint32_t last = hits.rows - 1u;
    smoothing_hit<float> here = smoothing_hit_of(field, filter, qop, hits.at(0));
    const smoothing_hit<float> end = smoothing_hit_of(field, filter, qop, hits.at(last));
    const smoothing_track<float> track = smoothing_track_of(qop, here, end, momentum.inverse_p2);
    long_fit_line<float> x, y;
    long_fit_start<float>(filter, x, here.x, track.tx);
    long_fit_start<float>(filter, y, here.y, track.ty);
    if (last == 0u) {
        put_smoothed(states[0], field, qop, here.z, {x, 0.f, 0.f}, {y, 0.f, 0.f});
        return;
    }
    for (uint32_t k = 1; k <= last; ++k) {
        const smoothing_hit<float> next = smoothing_hit_of(field, filter, qop, hits.at(k));
        const float dz = next.z - here.z;
        const line_estimate<float> to_x = predict_forward(filter, x, dz, track.scattering_x * next.material);
        const line_estimate<float> to_y = predict_forward(filter, y, dz, track.scattering_y * next.material);
        keep_prediction(states[k], to_x, to_y);
        x = smoothing_update(w, to_x, next.x).line;
        y = smoothing_update(w, to_y, next.y).line;
        here = next;
    }

    // The last hit has no estimate from the backward filter, the first one none from the forward filter.
    put_smoothed(states[last], field, qop, end.z, smoothing_update(w, kept_x(states[last]), end.x),
                 smoothing_update(w, kept_y(states[last]), end.y));
    long_fit_start<float>(filter, x, end.x, track.tx);
    long_fit_start<float>(filter, y, end.y, track.ty);
    for (uint32_t k = last; k-- > 0u;) {
        const smoothing_hit<float> next = smoothing_hit_of(field, filter, qop, hits.at(k));
        const float dz = next.z - here.z;
        const line_estimate<float> to_x = predict_backward(filter, x, dz, track.scattering_x * here.material);
        const line_estimate<float> to_y = predict_backward(filter, y, dz, track.scattering_y * here.material);
        const line_estimate<float> both_x = k == 0u ? to_x : smoothing_average(kept_x(states[k]), to_x);
        const line_estimate<float> both_y = k == 0u ? to_y : smoothing_average(kept_y(states[k]), to_y);
        put_smoothed(states[k], field, qop, next.z, smoothing_update(w, both_x, next.x),
                     smoothing_update(w, both_y, next.y));
        x = smoothing_update(w, to_x, next.x).line;
        y = smoothing_update(w, to_y, next.y).line;
        here = next;
    }
}

/// Write number and LHCbID of each hit of a track, in the direction of flight.
template <typename Parameters>
__device__ void name_states(const Parameters& p, uint32_t event, uint32_t track, smoothed_state* states)
{
    const uint32_t velo_track =
        p.velo_tracks.first(event) + p.long_tracks.velo_track[p.long_tracks.first(event) + track];
    const uint32_t first_hit = p.velo_hits.first(event), n = p.velo_tracks.hit_count[velo_track];
    const uint16_t* const hits = p.velo_tracks.hits + velo_track * max_velo_track_hits;
    for (uint32_t k = 0; k < n; ++k) {
        states[k].lhcb_id = p.velo_hits.id[first_hit + hits[n - 1u - k]];
        states[k].track = track;
    }
}

}  // namespace hlt

HLT_KERNEL(kalman_smooth_velo)
{
    __shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    const uint32_t event = blockIdx.x;
    if (!p.takes(event)) return;
    const hlt::velo_field field = *p.velo_field;
    const hlt::long_filter filter = hlt::long_filter_of(p);
    const uint32_t first_track = p.long_tracks.first(event), n_tracks = p.long_tracks.count[event];
    hlt::smoothed_state* const states = p.smoothed_states.state + p.smoothed_states.first(event);
    uint32_t running = 0;
    for (uint32_t base = 0; base < n_tracks; base += blockDim.x) {
        const uint32_t track = base + threadIdx.x;
        const uint32_t velo_track =
            track < n_tracks ? p.velo_tracks.first(event) + p.long_tracks.velo_track[first_track + track] : 0;
        const uint32_t n = track < n_tracks ? p.velo_tracks.hit_count[velo_track] : 0;
        uint32_t total;
        const uint32_t place = running + hlt::block_exclusive_sum(n, scratch, total);
        running += total;
        if (n == 0) continue;
        if (place + n <= hlt::max_smoothed_states) {
            const float qop = p.long_tracks.fitted_qop[first_track + track];
            hlt::smooth_track(field, filter, qop, hlt::velo_hits_of(p, event, first_track + track, true),
                              states + place);
            hlt::name_states(p, event, track, states + place);
        } else if (place <= hlt::max_smoothed_states) {  // the first track without room: one thread of the block
            p.smoothed_states.count[event] = place;
            p.events.flags[event] |= hlt::overflow;
        }
    }
    if (threadIdx.x == 0 && running <= hlt::max_smoothed_states) p.smoothed_states.count[event] = running;
}
