// Where the SciFi part of a VELO track is looked for: a range of kinks, and what the UT hits say of the scattering of
// the track behind the VELO (docs/physics/long-tracks.md).
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/long_tracks/bend.cuh"

namespace hlt {

/// A standard deviation: what does not depend on the momentum, and what rises with the kink.
struct kink_error {
    float constant;
    float per_kink;

    template <typename Lanes>
    __device__ Lanes operator()(const Lanes& kink) const
    {
        return constant + per_kink * absolute(kink);
    }
};

/// track_bend, in memory: a thread of a GPU has no registers for 25 coefficients beside those of a search.
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

struct forward_hypothesis {
    float low, high;        // kinks
    float offset;           // mm, expected distance in x from the parametrisation at kink 0 ...
    float offset_per_kink;  // ... and its change with the kink
    float shift;            // mm, the same in y
    kink_error sigma_offset, sigma_shift;
};

/// The hits of a VELO-UT track against the straight line of the VELO: in the middle of the UT they are `a` mm beside it
/// with the slope `b` relative to it, and `c` mm below it.
struct ut_residuals {
    float a, b, c;
    float chi2;
    float a_per_kink, b_per_kink;  // what the magnet does to a and b
    uint32_t n_hits;
};

constexpr float smallest_probed_s = 0.2f;  // c/GeV: bending is linear below
constexpr float ut_dz_scale = 0.01f;       // unit of b in the fit: per 100 mm
constexpr float ut_stereo_scale = 12.f;    // unit of c in the fit: mm / 12
constexpr float ut_b_weight = 0.25f;       // b is known to 0.02 and c to 6 mm before the fit
constexpr float ut_c_weight = 4.f;

/// A hit of the UT: x and z at y = 0 (mm), 1/mm^2; no weight where the layer has none.
struct ut_hit {
    float x, z, weight;
};

/// The least-squares fit of a, b and c. `hit(layer)` is a ut_hit.
template <typename Hit>
__device__ ut_residuals fit_ut_residuals(const long_track_parameters& parameters, const velo_line& line, const Hit& hit)
{
    float saa = 0.f, sab = 0.f, sac = 0.f, sbb = ut_b_weight, sbc = 0.f, scc = ut_c_weight;
    float sau = 0.f, sbu = 0.f, scu = 0.f;
    ut_residuals found{};
    const auto residual = [&](uint32_t layer, const ut_hit& at) {
        return at.x + parameters.ut_dx_dy[layer] * line.y_at(at.z) - line.x_at(at.z);
    };
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const ut_hit at = hit(layer);
        const float weight = at.weight;
        if (!(weight > 0.f)) continue;
        const float u = residual(layer, at);
        const float b = (at.z - z_middle_of_ut) * ut_dz_scale, c = parameters.ut_dx_dy[layer] * ut_stereo_scale;
        saa += weight;
        sab += weight * b;
        sac += weight * c;
        sbb += weight * b * b;
        sbc += weight * b * c;
        scc += weight * c * c;
        sau += weight * u;
        sbu += weight * b * u;
        scu += weight * c * u;
        ++found.n_hits;
    }
    // Cholesky, in units of the first element: weights are 300 to 1300 per mm^2.
    const float l_ba = sab / saa, l_ca = sac / saa;
    const float d_b = sbb - l_ba * sab, e_cb = sbc - l_ba * sac;
    const float l_cb = e_cb / d_b;
    const float d_c = scc - l_ca * sac - l_cb * e_cb;
    const float r_b = sbu - l_ba * sau, r_c = scu - l_ca * sau - l_cb * r_b;
    const float c_fit = r_c / d_c;
    const float b_fit = (r_b - e_cb * c_fit) / d_b;
    const float a_fit = (sau - sab * b_fit - sac * c_fit) / saa;
    found.chi2 = ut_b_weight * b_fit * b_fit + ut_c_weight * c_fit * c_fit;
    for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
        const ut_hit at = hit(layer);
        if (!(at.weight > 0.f)) continue;
        const float b = (at.z - z_middle_of_ut) * ut_dz_scale, c = parameters.ut_dx_dy[layer] * ut_stereo_scale;
        const float left = residual(layer, at) - a_fit - b * b_fit - c * c_fit;
        found.chi2 += at.weight * left * left;
    }
    found.a = a_fit;
    found.b = b_fit * ut_dz_scale;
    found.c = c_fit * ut_stereo_scale;
    return found;
}

/// Set what the magnet does to a and b, per kink; `s` (c/GeV) is that of the track or of one that bends more.
__device__ void set_bend_in_ut(const long_track_parameters& parameters, const velo_line& line, float s,
                               ut_residuals& residuals)
{
    const float kick = at_slopes(parameters.ut_kick, line.tx, line.ty, false)(s);
    const float z_magnet = at_slopes(parameters.ut_z_magnet, line.tx, line.ty, false)(s);
    const float change = tx_behind(line, s * c_per_gev_to_mev * kick) - line.tx;
    const float kink = kink_of(parameters, line, s);
    residuals.a_per_kink = change * (z_middle_of_ut - z_magnet) / kink;
    residuals.b_per_kink = change / kink;
}

}  // namespace hlt
