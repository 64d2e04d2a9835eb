// Lines in the UT that continue a SciFi seed through the magnet, for one hit or for hits in the lanes of a vector.
//
// The common kernel searches line by line, the form for the CPU with lines in lanes. Both use these formulas, so that
// their results have the same bits.
//
// The field is that of `hltnode parametrise` (tracks/downstream/field.py): the plane of the kick, the changes of y and
// of its slope, and the kick over the momentum, all as functions of the kink and of the slopes in the UT.
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/tracks/downstream/generated/downstream_field_types.h"
#include "lhcb/tracks/long/bend.cuh"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

// Errors of true tracks: a constant and a part that grows with the kink, mm.
constexpr float magnet_error = 0.6f, magnet_error_of_kink = 7.f;
constexpr float downstream_y_error = 5.f, downstream_y_error_of_kink = 20.f;
constexpr float stereo_error = 0.2f;
// Middle of each layer; sensors are up to 10 mm before or behind it, the reach of slopes has some reserve.
constexpr float ut_layer_z[n_long_ut_layers] = {2327.5f, 2372.5f, 2597.5f, 2642.5f};
constexpr float ut_layer_depth = 12.f;
// Lines within max_origin_x differ from the line through x = 0 in kink, thus in plane of the kick and in y. These are
// wide limits of the differences in the last layer: mm, for a unit of kink, and for a unit of ty.
constexpr float last_x_margin = 5.f, last_x_margin_of_kink = 30.f;
constexpr float last_y_margin = 7.f, last_y_margin_of_ty = 150.f;

/// A seed at z_scifi_reference.
struct downstream_seed {
    float x, tx, y, ty;

    template <typename Real>
    __device__ Real x_at(const Real& z) const
    {
        return x + tx * (z - z_scifi_reference);
    }
};

/// The line of a seed in the UT: mm and slopes at z_downstream_ut. `Real`: float, or a line in each lane of a vector.
template <typename Real>
struct downstream_line_of {
    Real x, tx, y, ty, kink;
};

using downstream_line = downstream_line_of<float>;

/// The functions of downstream_field at the ty of a seed.
struct downstream_functions {
    const downstream_field& field;
    float ty;

    __device__ float z_magnet(float tx, float kink) const { return at_slopes(field.z_magnet, tx, ty, false)(kink); }
    __device__ float y_slope(float tx, float kink) const { return at_slopes(field.y_slope, tx, ty, true)(kink); }
    __device__ float y_shift(float tx, float kink) const { return at_slopes(field.y_shift, tx, ty, true)(kink); }
};

template <typename Real>
__device__ Real squared(const Real& value)
{
    return value * value;
}

/// The line of a seed through a hit; x is not known yet, y and ty are those of the seed.
template <typename Functions, typename Real>
__device__ __forceinline__ downstream_line_of<Real> line_through(const downstream_field& field,
                                                                 const Functions& functions,
                                                                 const downstream_seed& seed, const Real& x,
                                                                 const Real& z)
{
    Real at = Real{} + field.z_magnet[0][0][0], tx{}, kink{};
    for (uint32_t step = 0; step < 2u; ++step) {
        if (step == 1u) at = functions.z_magnet(tx, kink);
        tx = (seed.x_at(at) - x) / (at - z);
        kink = seed.tx - tx;
    }
    return {Real{}, tx, Real{} + seed.y, Real{} + seed.ty, kink};
}

/// Change y and ty of a line to those in the UT.
template <typename Functions, typename Real>
__device__ __forceinline__ void bend_in_y(const Functions& functions, const downstream_seed& seed,
                                          downstream_line_of<Real>& line)
{
    line.ty = seed.ty / (1.f + line.kink * functions.y_slope(line.tx, line.kink));
    line.y =
        seed.y + line.ty * (z_downstream_ut - z_scifi_reference - line.kink * functions.y_shift(line.tx, line.kink));
}

/// The first estimate of a seed, its line through x = 0 at z = 0: it selects hits of the last layer.
struct downstream_estimate {
    downstream_line line;
    float first_x, end_x, y_margin;  // mm
    bool has_hits;
};

template <typename Functions, typename Parameters>
__device__ downstream_estimate estimate_of(const Parameters& p, const Functions& functions, const downstream_seed& seed)
{
    const float z_central = p.downstream_field->z_magnet[0][0][0];
    downstream_estimate estimate{};
    downstream_line& line = estimate.line;
    line.tx = seed.x_at(z_central) / z_central;
    line.kink = seed.tx - line.tx;
    const float z_kick = functions.z_magnet(line.tx, line.kink);
    bend_in_y(functions, seed, line);
    const float share = ut_layer_z[3] / z_kick, size = absolute(line.kink);
    // Other lines have kinks within max_origin_x / z of it.
    estimate.has_hits = !(size > p.max_kink + 2.f * p.max_origin_x / z_kick);
    const float x = share * seed.x_at(z_kick);
    const float reach = p.max_origin_x * (1.f - share) + last_x_margin + last_x_margin_of_kink * size +
                        ut_layer_depth * absolute(line.tx);
    estimate.first_x = x - reach;
    estimate.end_x = x + reach;
    estimate.y_margin =
        p.y_window + p.y_window_of_kink * size + last_y_margin + last_y_margin_of_ty * absolute(seed.ty);
    return estimate;
}

/// Whether strips reach a line at z, `margin` (mm) included. y and ty: of the line.
template <typename Strips, typename Z, typename Y, typename Margin>
__device__ __forceinline__ auto strips_reach(const Strips& y_begin, const Strips& y_end, const Z& z, const Y& line_y,
                                             const Y& ty, const Margin& margin)
{
    const auto y = line_y + ty * (z - z_downstream_ut);
    return (y_begin - margin < y) & (y < y_end + margin);
}

/// A line through a hit of the last layer, with its windows (mm). x is that of the hit without the bend.
template <typename Real>
struct line_of_last_hit {
    downstream_line_of<Real> line;
    Real z, bend, x_window, y_window;
    Real first_x, end_x;  // window in the first layer
};

/// Comparison: whether a line through a hit has a tangent and a kink within the cuts. False for nan, and for hits of
/// crowded bins.
template <typename Parameters, typename Real>
__device__ __forceinline__ auto is_within_cuts(const Parameters& p, const downstream_line_of<Real>& line, const Real& x,
                                               const Real& z)
{
    const Real size = absolute(line.kink), origin = absolute(x - line.tx * z);
    return (origin < p.max_origin_x) & (size > p.min_kink) & (size < p.max_kink);
}

template <typename Parameters, typename Real>
__device__ __forceinline__ line_of_last_hit<Real> with_windows(const Parameters& p,
                                                               const downstream_line_of<Real>& line, const Real& x,
                                                               const Real& z)
{
    const Real size = absolute(line.kink);
    line_of_last_hit<Real> last{line, z, {}, {}, {}, {}, {}};
    last.bend = p.downstream_field->ut_curve * line.kink;
    last.line.x = x - last.bend * squared(z - z_downstream_ut);
    last.x_window = p.x_window + p.x_window_of_kink * size;
    last.y_window = p.y_window + p.y_window_of_kink * size;
    const Real middle =
        last.line.x + line.tx * (ut_layer_z[0] - z) + last.bend * squared(ut_layer_z[0] - z_downstream_ut);
    const Real reach = last.x_window + ut_layer_depth * (absolute(line.tx) + 0.02f * size) + 0.1f;
    last.first_x = middle - reach;
    last.end_x = middle + reach;
    return last;
}

/// x of the last hit minus x of a first one, both without the bend.
template <typename Line, typename Real>
__device__ __forceinline__ Real x_to_first(const Line& line_x, const Line& bend, const Real& x, const Real& z)
{
    return line_x - (x - bend * squared(z - z_downstream_ut));
}

/// A line through a last and a first hit, with what its stereo hits need.
template <typename Real>
struct line_of_pair {
    downstream_line_of<Real> line;
    Real bend, y_window;
    Real magnet, magnet_chi2, n_used, least_chi2;
};

/// `to_first`: x_to_first; `n_used`: how many of both hits a long track has.
template <typename Parameters, typename Functions, typename Real>
__device__ __forceinline__ line_of_pair<Real> through_pair(const Parameters& p, const Functions& functions,
                                                           const downstream_seed& seed,
                                                           const line_of_last_hit<Real>& last, const Real& to_first,
                                                           const Real& z_of_first, const Real& n_used)
{
    line_of_pair<Real> pair{last.line, last.bend, last.y_window, {}, {}, n_used, {}};
    downstream_line_of<Real>& line = pair.line;
    line.tx = to_first / (last.z - z_of_first);
    line.x = last.line.x + line.tx * (z_downstream_ut - last.z);
    line.kink = seed.tx - line.tx;
    const Real z_kick = functions.z_magnet(line.tx, line.kink);
    pair.magnet = seed.x_at(z_kick) - line.x - line.tx * (z_kick - z_downstream_ut);
    pair.magnet_chi2 = squared(pair.magnet / (magnet_error + magnet_error_of_kink * absolute(line.kink)));
    pair.least_chi2 = pair.magnet_chi2 + p.used_hit_penalty * n_used;
    return pair;
}

/// Windows of a pair in both stereo layers, mm.
template <typename Real>
struct stereo_windows {
    Real y_weight;              // 1/mm
    Real reach;                 // largest distance
    Real first_x[2], end_x[2];  // of the first and the second stereo layer
};

/// Distance in x of a stereo hit from the line of a pair.
template <typename Pair, typename Real>
__device__ __forceinline__ Real stereo_distance(const line_of_pair<Pair>& pair, const Real& x, const Real& z,
                                                float dx_dy)
{
    const Real dz = z - z_downstream_ut;
    return x + dx_dy * (pair.line.y + pair.line.ty * dz) - pair.line.x - pair.line.tx * dz - pair.bend * squared(dz);
}

/// `best_chi2`: that of the best candidate.
template <typename Parameters, typename Real>
__device__ __forceinline__ stereo_windows<Real> stereo_windows_of(const Parameters& p, const line_of_pair<Real>& pair,
                                                                  float best_chi2)
{
    const Real size = absolute(pair.line.kink);
    const float dx_dy1 = p.downstream_field->ut_dx_dy[1];
    stereo_windows<Real> windows;
    windows.y_weight = 1.f / (downstream_y_error + downstream_y_error_of_kink * size);
    const Real depth = ut_layer_depth * (absolute(pair.line.tx) + 0.1f * absolute(pair.line.ty) + 0.02f * size) + 0.1f;
    // A stereo hit farther than this has a chi2 above that of the best candidate. The errors of rounding are below the
    // additions.
    const Real left_chi2 = min_of(p.max_chi2, best_chi2) - pair.least_chi2 + 1e-3f;
    const Real stereo_reach2 = squared(0.5f * stereo_error) + squared(dx_dy1 / windows.y_weight);
    const Real of_y = absolute(dx_dy1) * pair.y_window;
    const Real of_chi2 = 1.0001f * square_root(Real(left_chi2 * stereo_reach2));
    windows.reach = of_y < of_chi2 ? of_y : of_chi2;
    const Real wide = windows.reach + depth;
    for (uint32_t k = 0; k < 2u; ++k) {
        // x of the layer where the distance is 0.
        const Real z = Real{} + ut_layer_z[k + 1u];
        const Real middle = -stereo_distance(pair, Real{}, z, p.downstream_field->ut_dx_dy[k + 1u]);
        windows.first_x[k] = middle - wide;
        windows.end_x[k] = middle + wide;
    }
    return windows;
}

/// The distances of a candidate from its line and from each other, mm.
template <typename Real>
struct stereo_pair {
    Real stereo, y, chi2_without_used;
};

/// `d1`, `d2`: stereo_distance of both hits.
template <typename Real>
__device__ __forceinline__ stereo_pair<Real> stereo_pair_of(float d1, const Real& d2, float magnet_chi2, float y_weight,
                                                            float dx_dy1)
{
    stereo_pair<Real> pair;
    pair.stereo = d1 + d2;
    pair.y = (d2 - d1) * (0.5f / dx_dy1);
    pair.chi2_without_used =
        magnet_chi2 + squared(Real(pair.y * y_weight)) + squared(Real(pair.stereo * (1.f / stereo_error)));
    return pair;
}

/// Charge over momentum (1/MeV) of a line with a kink.
__device__ float downstream_qop(const downstream_field& field, const downstream_line& line)
{
    const float ty_behind = line.ty * (1.f + line.kink * at_slopes(field.y_slope, line.tx, line.ty, true)(line.kink));
    const float change = sine_of(line.tx + line.kink, ty_behind) - sine_of(line.tx, line.ty);
    const float kick = at_slopes(field.kick, line.tx, line.ty, false)(line.kink);
    return field.polarity * change / kick;
}

}  // namespace hlt
