// Chi2 and score of a pair of a VELO track and a SciFi seed; the score selects pairs.
#pragma once

#include "framework/device/math.cuh"
#include "lhcb/tracks/matching/seed_fit.cuh"
#include "lhcb/tracks/matching/ut_confirmation.cuh"

namespace hlt {

/// A seed for matching: curve, and line in y at the reference plane.
struct matching_seed {
    seed_curve curve;
    float y, ty;
    uint32_t n_hits;
};

/// Change of y in the magnet up to the reference plane, over the slope in y of the VELO.
__device__ float magnet_y(float kick, float tx) { return 1e3f * kick * (6.66f * tx - 0.34f * kick); }

/// Variance of y at the reference plane around the expected value, mm^2.
__device__ float variance_of_y(float kick) { return 6.25f + 1764.f * kick * kick; }

struct pair_chi2 {
    float x, y, ty, curvature;
    __device__ float sum() const { return x + y + ty + curvature; }
};

__device__ pair_chi2 compare(const matching_seed& seed, const velo_line& line)
{
    const float kick = seed.curve.b - line.tx;
    const float kick2 = kick * kick;
    const float tx2 = line.tx * line.tx, ty2 = line.ty * line.ty;
    const float plane =
        5185.26f + 141.68f * absolute(kick) + 247.6f * kick2 + 8.35f * tx2 - 1284.6f * ty2 + 523.05f * kick * line.tx;
    const float dx =
        seed.curve.a + seed.curve.b * (plane - z_scifi_reference) - (line.x + line.tx * (plane - z_velo_end));
    const float dy = seed.y - (line.y + line.ty * (z_scifi_reference - z_velo_end)) - line.ty * magnet_y(kick, line.tx);
    const float dty = seed.ty - line.ty - line.ty * kick * (1.158f * line.tx - 0.588f * kick);
    const float dc = seed.curve.c - kick * (2.213e-5f - 4.33e-4f * ty2 - 4.5e-5f * line.tx * seed.curve.b);
    const float dc_scaled = 1e6f * dc;
    return {dx * dx / (1.44f + 900.f * kick2), dy * dy / variance_of_y(kick), dty * dty / (1.69e-6f + 8.1e-5f * kick2),
            dc_scaled * dc_scaled / (0.0625f + 2.89f * kick2)};
}

/// Log-likelihood ratio of a pair, in units of chi2; low values are good. The UT term, which is never negative, is
/// added later.
__device__ float score_of(const pair_chi2& chi2, const velo_line& line, float kick, uint32_t n_hits)
{
    constexpr float of_place = 0.5f, of_slopes = 0.1f;
    constexpr float of_kick = 3.6f, of_angle = 2.4f, of_hits = 1.f, offset = -4.26f;
    float score = of_place * (chi2.x + chi2.y) + of_slopes * (chi2.ty + chi2.curvature) + offset;
    score += of_kick * logarithm(absolute(kick) + 0.01f);
    score -= of_angle * logarithm(line.tx * line.tx + line.ty * line.ty + 1e-6f);
    return score - of_hits * static_cast<float>(n_hits);
}

/// The UT term: 0 if the track crosses too few UT layers.
__device__ float score_of(const ut_confirmation& ut)
{
    constexpr float unconfirmed = 6.f, three_layers = 2.f, of_chi2 = 0.4f, max_chi2 = 30.f;
    if (ut.n_crossed < 3u) return 0.f;
    if (ut.n_layers < 3u) return unconfirmed;
    return of_chi2 * min_of(ut.chi2, max_chi2) + (ut.n_layers == 3u ? three_layers : 0.f);
}

constexpr float score_offset = 64.f, score_scale = 512.f;

/// Bid of a pair: its score, in steps of 1 / 512, then a number.
__device__ uint32_t bid_of_pair(float score, uint32_t number)
{
    const float scaled = (score + score_offset) * score_scale;
    return (scaled > 0.f ? static_cast<uint32_t>(min_of(scaled, 65534.f)) : 0u) << 16 | number;
}

/// q/p in 1/MeV, from the slopes in x at the end of the SciFi tracker and before the magnet (Allen 2023).
__device__ float qop_of(float tx_end, const velo_line& line, float polarity)
{
    const float t2 = tx_end * tx_end, ty2 = line.ty * line.ty;
    const float kick = tx_end - line.tx;
    const float power = 1239.40737f + t2 * (486.056641f + 6.71587015f * t2) + 632.728379f * tx_end * line.tx +
                        ty2 * (2358.57581f - 9256.27946f * ty2) + 241.460104f * line.tx * line.tx;
    const float p_over_q = power + (kick < 0.f ? -42.0485955f : 42.0485955f) * kick;
    return -polarity * kick / p_over_q;
}

}  // namespace hlt
