// A segment of a track: its clusters, its fits from one end to the other, and the frames of slices.
#pragma once

#include "alice/tpc/clusters/row_grid.cuh"
#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "alice/tpc/tracks/track_model.cuh"

namespace hlt {

/// Cosine and sine of the angle of a slice, 20 degrees, and of half of it.
constexpr float tpc_slice_cosine = 0.93969262f, tpc_slice_sine = 0.34202014f;
constexpr float tpc_half_slice_cosine = 0.98480775f, tpc_half_slice_sine = 0.17364818f;
constexpr uint32_t tpc_slices_of_side = tpc_slices / 2u;
/// Clusters that a fit takes at any distance: before, it hardly knows the track.
constexpr uint32_t tpc_trusted_in_segment = 10;

struct tpc_direction {
    float x, y;
};

__device__ tpc_direction turned(const tpc_direction& v, const tpc_direction& by)
{
    return {v.x * by.x - v.y * by.y, v.x * by.y + v.y * by.x};
}

/// Direction of the x axis of a slice in the global frame.
__device__ tpc_direction axis_of_slice(uint32_t slice)
{
    tpc_direction axis{tpc_half_slice_cosine, tpc_half_slice_sine};
    for (uint32_t i = slice % tpc_slices_of_side; i > 0u; --i) axis = turned(axis, {tpc_slice_cosine, tpc_slice_sine});
    return axis;
}

/// Clusters of tracks in cm.
struct tpc_places {
    const float *row_x, *pads;

    __device__ tpc_point point(const tpc_track_hit& hit) const
    {
        return {row_x[hit.row], y_of(hit.place), z_of(hit.place), pads[hit.row]};
    }
};

/// The state of a track of a slice, with z and slope as in the frame of drift.
__device__ tpc_state state_of(const tpc_track& track)
{
    const float side = track.slice < tpc_slices_of_side ? 1.f : -1.f;
    return {track.x,    track.y,    side * track.z, track.sin_phi, side * track.tan_lambda,
            track.q_pt, track.c_yy, track.c_sy,     track.c_ss,    track.c_qy,
            track.c_qs, track.c_qq, track.c_zz,     track.c_lz,    track.c_ll,
            track.chi2};
}

/// Variances of the start of a second iteration of a fit, in units of those of the first one.
constexpr float tpc_refit_variance = 100.f;

/// The start of a second iteration: the parameters of the first one, with wide errors.
template <typename Number>
__device__ void forget(tpc_state_of<Number>& t)
{
    t.yy *= tpc_refit_variance;
    t.ss *= tpc_refit_variance;
    t.qq *= tpc_refit_variance;
    t.zz *= tpc_refit_variance;
    t.ll *= tpc_refit_variance;
    t.sy = t.qy = t.qs = t.lz = Number{};
    t.chi2 = Number{};
}

/// Whether rounding has left all variances positive; those of y and z cannot become negative.
template <typename Number>
__device__ auto has_variances(const tpc_state_of<Number>& t)
{
    return (t.ss > 0.f) & (t.qq > 0.f) & (t.ll > 0.f);
}

/// The track in the frame of the slice at an angle of +20 (or -20) degrees; false if it does not go outwards there.
/// The covariance is that at constant x of the new frame; the curvature on the way between both planes is neglected.
__device__ bool rotate(const tpc_filter& filter, tpc_state& t, bool forwards)
{
    const float sine = forwards ? tpc_slice_sine : -tpc_slice_sine;
    const float c = square_root(1.f - t.s * t.s);
    const float cosine = c * tpc_slice_cosine + t.s * sine, s = t.s * tpc_slice_cosine - c * sine;
    if (!(cosine > 0.f) || !is_within(filter, s)) return false;
    const float x = t.x, y = t.y, ratio = c / cosine, inverse = cosine / c;
    t.x = x * tpc_slice_cosine + y * sine;
    t.y = y * tpc_slice_cosine - x * sine;
    t.s = s;
    t.yy *= ratio * ratio;
    t.ss *= inverse * inverse;
    t.qy *= ratio;
    t.qs *= inverse;
    return true;
}

/// The track in the frame of another slice; false if it does not go outwards there.
__device__ bool change_slice(const tpc_filter& filter, tpc_state& t, uint32_t from, uint32_t to)
{
    const uint32_t steps =
        (to % tpc_slices_of_side + tpc_slices_of_side - from % tpc_slices_of_side) % tpc_slices_of_side;
    const bool forwards = steps <= tpc_slices_of_side / 2u;
    for (uint32_t i = forwards ? steps : tpc_slices_of_side - steps; i > 0u; --i)
        if (!rotate(filter, t, forwards)) return false;
    if ((from < tpc_slices_of_side) != (to < tpc_slices_of_side)) {
        t.z = -t.z;
        t.l = -t.l;
    }
    return true;
}

}  // namespace hlt
