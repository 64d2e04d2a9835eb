// The search region of the SciFi part of a VELO track: a range of kinks, and the scattering of the track behind the
// VELO from its UT hits (docs/physics/long-tracks.md).
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/tracks/long/bend.cuh"

namespace hlt {

/// A standard deviation: a term independent of the momentum, and a term that rises with the kink.
struct kink_error {
    float constant;
    float per_kink;

    template <typename Lanes>
    __device__ Lanes operator()(const Lanes& kink) const
    {
        return constant + per_kink * absolute(kink);
    }
};

/// track_bend, in memory: a GPU thread has no registers for 25 coefficients in addition to those of the search.
class bend_in_memory {
  public:
    __device__ explicit bend_in_memory(const track_bend& bend)
        : functions_{bend.z_magnet, bend.curvature, bend.cubic, bend.y_shift, bend.y_slope}
    {
    }

    template <typename Kink>
    __device__ bend_functions<Kink> at(const Kink& kink) const
    {
        Kink values[n_functions];
#pragma unroll 1
        for (uint32_t i = 0; i < n_functions; ++i) values[i] = functions_[i](kink);
        return {kink, values[0], values[1], values[2], values[3], values[4]};
    }

  private:
    static constexpr uint32_t n_functions = 5;
    bend_polynomial functions_[n_functions];
};

// `Real`: float for one VELO track, or a vector of floats with one track in each lane.

template <typename Real>
struct forward_hypothesis_of {
    Real low, high;        // kinks
    Real offset;           // mm, expected distance in x from the parametrisation at kink 0 ...
    Real offset_per_kink;  // ... and its change with the kink
    Real shift;            // mm, the same in y
    kink_error sigma_offset, sigma_shift;
};
using forward_hypothesis = forward_hypothesis_of<float>;

/// The hits of a VELO-UT track against the straight line of the VELO: in the middle of the UT they are `a` mm beside it
/// with the slope `b` relative to it, and `c` mm below it.
template <typename Real>
struct ut_residuals_of {
    Real a, b, c;
    Real chi2;
    Real a_per_kink, b_per_kink;  // effect of the magnet on a and b
    Real n_missing;               // layers without hit
};
using ut_residuals = ut_residuals_of<float>;

constexpr float smallest_probed_s = 0.2f;  // c/GeV: bending is linear below
constexpr float ut_dz_scale = 0.01f;       // unit of b in the fit: per 100 mm
constexpr float ut_stereo_scale = 12.f;    // unit of c in the fit: mm / 12
constexpr float ut_b_weight = 0.25f;       // b is known to 0.02 and c to 6 mm before the fit
constexpr float ut_c_weight = 4.f;

/// A hit of the UT: x and z at y = 0 (mm), weight (1/mm^2); weight 0 if the layer has no hit.
template <typename Real>
struct ut_hit_of {
    Real x, z, weight;
};
using ut_hit = ut_hit_of<float>;

/// The least-squares fit of a, b and c. `hit(layer)` is a ut_hit.
template <typename Real, typename Hit>
__device__ ut_residuals_of<Real> fit_ut_residuals(const long_track_parameters& parameters,
                                                  const velo_line_of<Real>& line, const Hit& hit)
{
    Real saa{}, sab{}, sac{}, sbb = Real{} + ut_b_weight, sbc{}, scc = Real{} + ut_c_weight;
    Real sau{}, sbu{}, scu{};
    ut_residuals_of<Real> found{};
    const auto residual = [&](uint32_t layer, const ut_hit_of<Real>& at) -> Real {
        return at.x + parameters.ut_dx_dy[layer] * line.y_at(at.z) - line.x_at(at.z);
    };
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const ut_hit_of<Real> at = hit(layer);
        const Real weight = at.weight;
        const Real u = residual(layer, at), b = (at.z - z_middle_of_ut) * ut_dz_scale;
        const float c = parameters.ut_dx_dy[layer] * ut_stereo_scale;
        saa += weight;
        sab += weight * b;
        sac += weight * c;
        sbb += weight * b * b;
        sbc += weight * b * c;
        scc += weight * c * c;
        sau += weight * u;
        sbu += weight * b * u;
        scu += weight * c * u;
        found.n_missing += weight > 0.f ? Real{} : Real{} + 1.f;
    }
    // Cholesky, in units of the first element: weights are 300 to 1300 per mm^2.
    const Real l_ba = sab / saa, l_ca = sac / saa;
    const Real d_b = sbb - l_ba * sab, e_cb = sbc - l_ba * sac;
    const Real l_cb = e_cb / d_b;
    const Real d_c = scc - l_ca * sac - l_cb * e_cb;
    const Real r_b = sbu - l_ba * sau, r_c = scu - l_ca * sau - l_cb * r_b;
    const Real c_fit = r_c / d_c;
    const Real b_fit = (r_b - e_cb * c_fit) / d_b;
    const Real a_fit = (sau - sab * b_fit - sac * c_fit) / saa;
    found.chi2 = ut_b_weight * b_fit * b_fit + ut_c_weight * c_fit * c_fit;
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const ut_hit_of<Real> at = hit(layer);
        const Real b = (at.z - z_middle_of_ut) * ut_dz_scale;
        const float c = parameters.ut_dx_dy[layer] * ut_stereo_scale;
        const Real left = residual(layer, at) - a_fit - b * b_fit - c * c_fit;
        found.chi2 += at.weight * left * left;
    }
    found.a = a_fit;
    found.b = b_fit * ut_dz_scale;
    found.c = c_fit * ut_stereo_scale;
    return found;
}

/// Set the effect of the magnet on a and b, per kink; `s` (c/GeV) is that of the track or of a track that bends more.
template <typename Real>
__device__ void set_bend_in_ut(const long_track_parameters& parameters, const velo_line_of<Real>& line, const Real& s,
                               ut_residuals_of<Real>& residuals)
{
    const Real kick = at_slopes(parameters.ut_kick, line.tx, line.ty, false)(s);
    const Real z_magnet = at_slopes(parameters.ut_z_magnet, line.tx, line.ty, false)(s);
    const Real change = tx_behind(line, Real(s * c_per_gev_to_mev * kick)) - line.tx;
    const Real kink = kink_of(parameters, line, s);
    residuals.a_per_kink = change * (z_middle_of_ut - z_magnet) / kink;
    residuals.b_per_kink = change / kink;
}

}  // namespace hlt
