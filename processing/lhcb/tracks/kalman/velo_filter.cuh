// A filter of the VELO hits of long tracks with their momentum (docs/physics/long-kalman-filter.md).
//
// From the first to the last hit given, in either direction; x and y are filtered independently. Unlike the filter of
// VELO tracks (lhcb/velo/tracking/kalman_filter.cuh), multiple scattering is known from the momentum and differs
// between x and y, and the filter corrects for the field: it subtracts the bend from z = 0 on from the hits, and adds
// it at the end of the fit.
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/tracks/kalman/velo_bend.cuh"
#include "lhcb/velo/generated/velo_types.h"

namespace hlt {

/// Constants of the filter for hits and material. The material of a step is not a thin layer: with s, the noise of the
/// slope, that of (position, slope) behind the step is s (position dz^2, both dz, 1). Moved to the start of the step it
/// is s ((position - 2 both + 1) dz^2, (both - 1) dz, 1).
struct long_filter {
    float hit_variance;  // mm^2
    float start_slope_variance;
    float module;  // variance of the angle of scattering at normal incidence, times p^2: MeV^2
    float foil;    // added for a hit whose path has crossed the RF foil
    float step_position;
    float step_both;
};

template <typename P>
__device__ long_filter long_filter_of(const P& p)
{
    return {p.hit_variance,    p.start_slope_variance, p.module_scattering,
            p.foil_scattering, p.step_position,        p.step_both};
}

constexpr float long_max_inverse_momentum =
    0.1f;  // 1/MeV; used for the scattering of a track with q/p = NaN, which is not bent

// `Real`: float for one track, or a vector of floats with one track in each lane.

/// One coordinate of a state, position and slope, with covariance.
template <typename Real>
struct long_fit_line {
    Real x, t;
    Real c00, c20, c22;
};

template <typename Real>
struct long_fit_state {
    long_fit_line<Real> x, y;
    Real z;
    Real chi2;
    Real inverse_p2;
    Real qop;  // of the bend
};

template <typename Real>
struct velo_hit_of_track {
    Real x, y, z;
};

/// The hits of a track, which has at least one, in either direction.
class velo_hits_of_track {
  public:
    uint32_t rows;

    /// `indices` of its hits, and x, y, z of all hits. `reversed`: the last hit is the first.
    __device__ velo_hits_of_track(uint32_t count, const uint16_t* indices, const float* x, const float* y,
                                  const float* z, bool reversed)
        : rows(count), indices_(indices + (reversed ? count - 1u : 0u)), step_(reversed ? -1 : 1), x_(x), y_(y), z_(z)
    {
    }

    __device__ bool has(uint32_t) const { return true; }
    __device__ velo_hit_of_track<float> at(uint32_t k) const
    {
        const uint32_t hit = indices_[static_cast<int32_t>(k) * step_];
        return {x_[hit], y_[hit], z_[hit]};
    }

  private:
    const uint16_t* indices_;
    int32_t step_;
    const float* x_;
    const float* y_;
    const float* z_;
};

/// The hits of a long track. `p`: the parameters of a kernel.
template <typename Parameters>
__device__ velo_hits_of_track velo_hits_of(const Parameters& p, uint32_t event, uint32_t track, bool reversed)
{
    const uint32_t velo_track = p.velo_tracks.first(event) + p.long_tracks.velo_track[track];
    const uint32_t first_hit = p.velo_hits.first(event);
    return {p.velo_tracks.hit_count[velo_track], p.velo_tracks.hits + velo_track * max_velo_track_hits,
            p.velo_hits.x + first_hit,           p.velo_hits.y + first_hit,
            p.velo_hits.z + first_hit,           reversed};
}

/// The momentum of a track, within the limits of scattering.
template <typename Real>
__device__ void long_fit_momentum(long_fit_state<Real>& state, const Real& qop)
{
    const Real inverse = qop < 0.f ? -qop : qop, none{};
    const Real bounded = inverse < long_max_inverse_momentum ? inverse : none + long_max_inverse_momentum;
    state.inverse_p2 = bounded * bounded;
    state.qop = inverse < long_max_inverse_momentum ? qop : none;
}

template <typename Real>
__device__ void long_fit_start(const long_filter& filter, long_fit_line<Real>& line, const Real& position,
                               const Real& slope)
{
    line.x = position;
    line.t = slope;
    line.c00 = Real{} + filter.hit_variance;
    line.c20 = Real{};
    line.c22 = Real{} + filter.start_slope_variance;
}

/// Predict over dz with noise `s` and update with a measured position, where `there` is true. Returns the increase of
/// chi2. The noise is moved to the start of the step, so that the update of the covariance
/// (docs/physics/kalman-filter.md) never subtracts nearly equal numbers.
template <typename Real, typename Mask>
__device__ __forceinline__ Real long_fit_step(const long_filter& filter, long_fit_line<Real>& line, const Real& dz,
                                              const Real& s, const Real& measured, const Mask& there)
{
    const Real s_dz = s * dz;
    const Real c00 = line.c00 + (filter.step_position - 2.f * filter.step_both + 1.f) * (s_dz * dz);
    const Real c20 = line.c20 + (filter.step_both - 1.f) * s_dz;
    const Real c22 = line.c22 + s;
    const Real predicted_c20 = c20 + dz * c22;
    const Real predicted_c00 = c00 + dz * (c20 + predicted_c20);
    const Real inverse = 1.f / (filter.hit_variance + predicted_c00);
    const Real gain = predicted_c00 * inverse;
    const Real slope_gain = predicted_c20 * inverse;
    const Real predicted = line.x + dz * line.t;
    const Real residual = measured - predicted;
    line.x = there ? predicted + gain * residual : line.x;
    line.t = there ? line.t + slope_gain * residual : line.t;
    line.c00 = there ? filter.hit_variance * gain : line.c00;
    line.c20 = there ? filter.hit_variance * slope_gain : line.c20;
    line.c22 = there ? inverse * (c22 * (filter.hit_variance + c00) - c20 * c20) : line.c22;
    return there ? residual * residual * inverse : Real{};
}

/// Predict over dz, with noise s (position dz^2, both dz, 1) of (position, slope).
template <typename Real>
__device__ void long_fit_move(long_fit_line<Real>& line, const Real& dz, const Real& s, float position, float both)
{
    const Real moved_c20 = line.c20 + dz * line.c22;
    line.x += dz * line.t;
    line.c00 += dz * (line.c20 + moved_c20) + position * (s * dz * dz);
    line.c20 = moved_c20 + both * (s * dz);
    line.c22 += s;
}

/// (1 + tx^2 + ty^2)^1.5: times this and 1 + t^2, the variance of the scattering angle becomes that of a slope t.
template <typename Real>
__device__ Real long_fit_obliquity(const Real& tx, const Real& ty)
{
    const Real n2 = 1.f + tx * tx + ty * ty;
    return n2 * square_root(n2);
}

/// True if a particle from the beam line crosses the RF foil just before this hit: hits in the inner corners of the
/// modules, which are open squares turned by 45 degrees.
template <typename Real>
__device__ auto long_fit_behind_foil(const Real& x, const Real& y)
{
    const Real u = x + y;
    const Real v = y - x;
    return ((v > -15.f) & (u >= 0.f) & (u < 15.f)) | ((v < 15.f) & (u > -15.f) & (u <= 0.f));
}

/// x of a hit on the track without the field.
template <typename Real>
__device__ Real long_fit_unbent(const velo_field& field, const Real& qop, const velo_hit_of_track<Real>& hit)
{
    return hit.x - bend_of_position(field, qop, 0.f, hit.z);
}

/// Predict with `scattering` (p^2 times variance of the angle) over dz, then apply the bend of the field up to there.
template <typename Real>
__device__ void long_fit_end(const velo_field& field, long_fit_state<Real>& state, const Real& dz, float scattering,
                             float position, float both)
{
    const Real tx = state.x.t, ty = state.y.t;
    const Real variance = scattering * state.inverse_p2 * long_fit_obliquity(tx, ty);
    long_fit_move<Real>(state.x, dz, (1.f + tx * tx) * variance, position, both);
    long_fit_move<Real>(state.y, dz, (1.f + ty * ty) * variance, position, both);
    state.z += dz;
    state.x.x += bend_of_position(field, state.qop, 0.f, state.z);
    state.x.t += bend_of_slope(field, state.qop, 0.f, state.z);
}

/// Filter at most `rows` hits. A track has hit k if has(k) is true; the last one is at(rows - 1).
template <typename Real, typename Hits>
__device__ void long_fit(const Hits& hits, const velo_field& field, const long_filter& filter,
                         long_fit_state<Real>& state)
{
    const velo_hit_of_track<Real> first = hits.at(0), last = hits.at(hits.rows - 1u);
    const Real from_last = first.z - last.z, none{};
    const Real scale = from_last != 0.f ? 1.f / from_last : none;
    const Real first_x = long_fit_unbent(field, state.qop, first);
    const Real slope_x = (first_x - long_fit_unbent(field, state.qop, last)) * scale;
    long_fit_start<Real>(filter, state.x, first_x, slope_x);
    long_fit_start<Real>(filter, state.y, first.y, (first.y - last.y) * scale);
    state.z = first.z;
    state.chi2 = none;
    for (uint32_t k = 1; k < hits.rows; ++k) {
        const velo_hit_of_track<Real> hit = hits.at(k);
        const auto there = hits.has(k);
        const Real dz = hit.z - state.z;
        const Real tx = state.x.t, ty = state.y.t;
        const Real layer = filter.module + (long_fit_behind_foil(hit.x, hit.y) ? none + filter.foil : none);
        const Real variance = layer * state.inverse_p2 * long_fit_obliquity(tx, ty);
        const Real x = long_fit_unbent(field, state.qop, hit);
        state.chi2 += long_fit_step<Real>(filter, state.x, dz, (1.f + tx * tx) * variance, x, there);
        state.chi2 += long_fit_step<Real>(filter, state.y, dz, (1.f + ty * ty) * variance, hit.y, there);
        state.z = there ? hit.z : state.z;
    }
}

}  // namespace hlt
