// The bend of one VELO track in the magnet: the functions of long_track_parameters at its slopes, polynomials of the
// kink alone (docs/physics/long-tracks.md).
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/tracks/long/generated/long_track_parameter_types.h"
#include "lhcb/ut/generated/ut_types.h"

namespace hlt {

constexpr float c_per_gev_to_mev = 1e-3f;
constexpr float largest_sine = 0.9f;

// `Real`: float for one VELO track, or a vector of floats with one track in each lane.

/// A polynomial of the kink, or of s = polarity q/p in c/GeV.
template <typename Real>
struct bend_polynomial_of {
    Real a[n_bend_powers];

    template <typename Lanes>
    __device__ Lanes operator()(const Lanes& bend) const
    {
        return a[0] + bend * (a[1] + bend * (a[2] + bend * (a[3] + bend * a[4])));
    }
};

using bend_polynomial = bend_polynomial_of<float>;

/// A table of coefficients for one tx and ty; `odd`: it changes sign with bend and tx.
template <typename Real>
__device__ bend_polynomial_of<Real> at_slopes(const float (&table)[n_bend_powers][n_tx_powers][n_ty_powers],
                                              const Real& tx, const Real& ty, bool odd)
{
    const Real tx2 = tx * tx, ty2 = ty * ty;
    bend_polynomial_of<Real> polynomial;
    for (uint32_t k = 0; k < n_bend_powers; ++k) {
        const Real first = table[k][0][0] + ty2 * (table[k][0][1] + ty2 * table[k][0][2]);
        const Real second = table[k][1][0] + ty2 * (table[k][1][1] + ty2 * table[k][1][2]);
        const bool is_odd = ((k & 1u) != 0u) != odd;
        polynomial.a[k] = (first + tx2 * second) * (is_odd ? tx : Real{} + 1.f);
    }
    return polynomial;
}

template <typename Real>
struct velo_line_of {
    Real x, y, tx, ty;  // at z_velo_end

    template <typename Lanes>
    __device__ Lanes x_at(const Lanes& z) const
    {
        return x + tx * (z - z_velo_end);
    }
    template <typename Lanes>
    __device__ Lanes y_at(const Lanes& z) const
    {
        return y + ty * (z - z_velo_end);
    }
};

using velo_line = velo_line_of<float>;

template <typename Real>
__device__ Real sine_of(const Real& tx, const Real& ty)
{
    return tx / square_root(1.f + tx * tx + ty * ty);
}

/// tx after a change of the sine; ty does not change.
template <typename Real>
__device__ Real tx_behind(const velo_line_of<Real>& line, const Real& change)
{
    const Real largest = Real{} + largest_sine;
    Real sine = sine_of(line.tx, line.ty) + change;
    sine = sine < -largest ? -largest : sine > largest ? largest : sine;
    return sine * square_root((1.f + line.ty * line.ty) / (1.f - sine * sine));
}

/// The kink of s = polarity q/p (c/GeV).
template <typename Real>
__device__ Real kink_of(const long_track_parameters& parameters, const velo_line_of<Real>& line, const Real& s)
{
    const Real kick = at_slopes(parameters.kick_of_momentum, line.tx, line.ty, false)(s);
    return tx_behind(line, Real(s * c_per_gev_to_mev * kick)) - line.tx;
}

/// The values of the functions at a kink, or at one in each lane.
template <typename Kink>
struct bend_functions {
    Kink kink;
    Kink z_magnet;
    Kink curvature;
    Kink cubic;
    Kink y_shift;  // mm, of ty
    Kink y_slope;  // of ty

    /// x minus that of the line, over the kink.
    template <typename Lanes>
    __device__ auto lever(const Lanes& z) const
    {
        const Lanes dz = z - z_scifi_reference;
        return z - z_magnet + (curvature + cubic * dz) * dz * dz;
    }

    /// y minus that of the line, over ty.
    template <typename Lanes>
    __device__ auto y_change(const Lanes& z) const
    {
        return kink * (y_shift + y_slope * (z - z_scifi_reference));
    }
};

using bend_at_kink = bend_functions<float>;

/// The functions behind the VELO for one track.
template <typename Real>
struct track_bend_of {
    bend_polynomial_of<Real> z_magnet;
    bend_polynomial_of<Real> curvature;
    bend_polynomial_of<Real> cubic;
    bend_polynomial_of<Real> y_shift;
    bend_polynomial_of<Real> y_slope;

    __device__ track_bend_of(const long_track_parameters& parameters, const velo_line_of<Real>& line)
        : z_magnet(at_slopes(parameters.z_magnet, line.tx, line.ty, false)),
          curvature(at_slopes(parameters.curvature, line.tx, line.ty, false)),
          cubic(at_slopes(parameters.cubic, line.tx, line.ty, false)),
          y_shift(at_slopes(parameters.y_shift, line.tx, line.ty, true)),
          y_slope(at_slopes(parameters.y_slope, line.tx, line.ty, true))
    {
    }

    template <typename Kink>
    __device__ bend_functions<Kink> at(const Kink& kink) const
    {
        return {kink, z_magnet(kink), curvature(kink), cubic(kink), y_shift(kink), y_slope(kink)};
    }
};

using track_bend = track_bend_of<float>;

/// polarity q/p (c/GeV) of a track with this kink.
template <typename Real>
__device__ Real s_of(const long_track_parameters& parameters, const velo_line_of<Real>& line,
                     const bend_functions<Real>& bend)
{
    const Real change =
        sine_of(line.tx + bend.kink, line.ty * (1.f + bend.kink * bend.y_slope)) - sine_of(line.tx, line.ty);
    return change / (c_per_gev_to_mev * at_slopes(parameters.kick, line.tx, line.ty, false)(bend.kink));
}

}  // namespace hlt
