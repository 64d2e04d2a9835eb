// The search for hits of x layers that begins with pairs of hits (seed_in_x.cuh).
//
// On a CPU a thread takes many first hits at a time. It does each step for all their pairs, then for all curves, before
// the next step, which leaves few unpredictable branches. On a GPU the threads share this work.
#pragma once

#include "lhcb/tracks/matching/x_curves.cuh"

namespace hlt {

struct x_search_cuts {
    float max_x0;
    float max_magnet_x;
    float max_chi2;
    float missing_hit_penalty;
};

#if HLT_ON_GPU
constexpr uint32_t firsts_together = 1;
constexpr uint32_t pairs_together = 1;
constexpr uint32_t pair_lanes = 1;
#else
constexpr uint32_t firsts_together = 32;
constexpr uint32_t pairs_together = 64;
constexpr uint32_t pair_lanes = 8;
#endif

/// A curve during the search: the expected places in the layers of the steps, then (a, b, c).
struct followed_curve {
    float values[n_followed];
    float chi2;
    uint32_t pattern;  // steps with a hit
    uint32_t n_missing;
    uint32_t first, last;  // first: counted from the first hit of the search
    uint32_t hits[n_x_steps];

    /// Update with the hit of step `i`, at distance `residual` from its expected place. Without a hit `residual` and
    /// `pattern_bit` are 0.
    __device__ void add(const x_step& step, float residual, uint32_t pattern_bit)
    {
        for (uint32_t k = 0; k < n_followed; ++k) values[k] += step.gain[k] * residual;
        chi2 += residual * residual * step.inverse_variance;
        pattern |= pattern_bit;
    }
};

/// Pairs of some first hits, and the curves that begin with them.
class x_pair_search {
  public:
    /// `strict`: the first two steps must find a hit.
    __device__ x_pair_search(const x_search& search, const seeding_hit_view& hits, const uint32_t* cells, uint32_t half,
                             const x_search_cuts& cuts, bool strict)
        : search_(search), hits_(hits), half_(half), cuts_(cuts), strict_(strict)
    {
        for (uint32_t i = 0; i < 2u; ++i) {
            cells_[i] = cells_of(cells, x_layer_of(search.layers[i]), half);
            windows_[i] = cells_of_window(search.steps[0][i].tolerance);
        }
    }

    /// Find the best curves of `n` hits from `first` on; a strict search skips hits that `taken` marks.
    __device__ void run(uint32_t first, uint32_t n, const uint8_t* taken, two_curves* best)
    {
        const scifi_zone partners = hits_.zone(search_.last_layer, half_);
        const float by_x0 = cuts_.max_x0 * search_.scale, by_magnet = cuts_.max_magnet_x * search_.magnet_scale;
        first_ = first;
        best_ = best;
        for (uint32_t k = 0; k < n; ++k) {
            best[k].n = 0;
            if (strict_ && taken[first + k] != 0u) continue;
            const float x = hits_.x[first + k];
            const float from_origin = x + x * search_.scale, from_magnet = x + x * search_.magnet_scale;
            uint32_t partner = partners.from(max_of(from_origin - by_x0, from_magnet - by_magnet));
            const uint32_t beyond = partners.from(min_of(from_origin + by_x0, from_magnet + by_magnet));
            const uint32_t end = min_of(beyond, partner + max_partners);
            n_begun_[0][k] = n_begun_[1][k] = 0;
            while (partner < end) {
                const uint32_t n_new = min_of(end - partner, pairs_together - n_pairs_);
                for (uint32_t i = 0; i < n_new; ++i) {
                    x_first_[n_pairs_ + i] = x;
                    x_last_[n_pairs_ + i] = hits_.x[partner + i];
                    firsts_[n_pairs_ + i] = k;
                    lasts_[n_pairs_ + i] = partner + i;
                }
                partner += n_new;
                n_pairs_ += n_new;
                if (n_pairs_ == pairs_together) begin_curves();
            }
        }
        if (pairs_together != 1u) begin_curves();
    }

  private:
    // Limits for a first hit, for a first hit in one layer of the first two steps, and for a pair in such a layer.
    static constexpr uint32_t max_partners = 96;
    static constexpr uint32_t max_begun = 64;
    static constexpr uint32_t max_in_window = 8;

    /// Follow the gathered pairs into the layers of the first two steps; each hit begins a curve.
    __device__ void begin_curves()
    {
        uint32_t near[2][pairs_together];
        for (uint32_t base = 0; base < n_pairs_; base += pair_lanes) look_around(base, near);
#pragma unroll
        for (uint32_t i = 0; i < 2u; ++i) {
            if (strict_ && i != 0u) continue;
            uint32_t chosen[pairs_together];
            uint32_t n_chosen = 0;
            for (uint32_t k = 0; k < n_pairs_; ++k) {
                chosen[n_chosen] = k;
                n_chosen += near[i][k] & (strict_ ? near[1][k] : 1u);
            }
            const scifi_zone zone = hits_.zone(search_.layers[i], half_);
            const float tolerance = search_.steps[0][i].tolerance;
            for (uint32_t m = 0; m < n_chosen; ++m) {
                const uint32_t k = chosen[m];
                const uint32_t begin = zone.from(places_[i][k] - tolerance);
                const uint32_t end = min_of(zone.end(), begin + max_in_window);
                for (uint32_t hit = begin; hit < end && hits_.x[hit] - places_[i][k] <= tolerance; ++hit) {
                    if (n_begun_[i][firsts_[k]] == max_begun) break;
                    ++n_begun_[i][firsts_[k]];
                    begin_curve(k, i, hit);
                }
            }
            follow_begun(i + 1u);
        }
        n_pairs_ = 0;
    }

    /// The expected places of some pairs, and flags for a near hit.
    __device__ void look_around(uint32_t base, uint32_t (&near)[2][pairs_together])
    {
        // All of this is local, so that it stays in vector registers of a CPU.
        const x_search& search = search_;
        const float inverse_step = search.inverse_step, by_tangent = search.curvature, z = search.z;
        float x_first[pair_lanes], x_last[pair_lanes], slopes[pair_lanes], curvatures[pair_lanes];
        for (uint32_t k = 0; k < pair_lanes; ++k) {
            x_first[k] = x_first_[base + k];
            x_last[k] = x_last_[base + k];
        }
        for (uint32_t k = 0; k < pair_lanes; ++k) {
            slopes[k] = (x_last[k] - x_first[k]) * inverse_step;
            curvatures[k] = by_tangent * (x_first[k] - slopes[k] * z);
        }
        for (uint32_t k = 0; k < pair_lanes; ++k) {
            slopes_[base + k] = slopes[k];
            curvatures_[base + k] = curvatures[k];
        }
        for (uint32_t i = 0; i < 2u; ++i) {
            const float by_slope = search.by_slope[i], by_curvature = search.by_curvature[i];
            const float tolerance = search.steps[0][i].tolerance;
            const uint32_t window = windows_[i];
            const uint32_t* const cells = cells_[i];
            float places[pair_lanes];
            uint32_t found[pair_lanes];
            for (uint32_t k = 0; k < pair_lanes; ++k)
                places[k] = x_first[k] + slopes[k] * by_slope + curvatures[k] * by_curvature;
            for (uint32_t k = 0; k < pair_lanes; ++k) found[k] = has_hit_near(cells, places[k], tolerance, window);
            for (uint32_t k = 0; k < pair_lanes; ++k) {
                places_[i][base + k] = places[k];
                near[i][base + k] = found[k];
            }
        }
    }

    /// The curve through a pair and a hit of step `i`, the first one that finds a hit.
    __device__ followed_curve curve_through(uint32_t pair, uint32_t i, uint32_t hit) const
    {
        followed_curve curve;
        for (uint32_t k = 0; k < n_followed; ++k)
            curve.values[k] = x_first_[pair] * search_.by_place[k] + slopes_[pair] * search_.by_slope[k] +
                              curvatures_[pair] * search_.by_curvature[k];
        curve.chi2 = 0.f;
        curve.pattern = 0;
        curve.n_missing = i;
        curve.first = firsts_[pair];
        curve.last = lasts_[pair];
        curve.hits[0] = no_scifi_hit;
        curve.hits[i] = hit;
        curve.add(search_.steps[0][i], hits_.x[hit] - places_[i][pair], 1u << i);
        return curve;
    }

    /// Add the closest hit of step `i`. Returns true if enough steps have a hit.
    __device__ bool take_step(followed_curve& curve, uint32_t i, const scifi_zone& zone) const
    {
        const x_step& step = search_.steps[curve.pattern][i];
        const close_hit found = nearest_hit(zone, hits_.x, curve.values[i], step.tolerance);
        const uint32_t is_missing = static_cast<uint32_t>(found.hit == no_scifi_hit);
        curve.hits[i] = found.hit;
        curve.n_missing += is_missing;
        curve.add(step, found.residual, (1u - is_missing) << i);
        return curve.n_missing + (i < 2u && strict_ ? is_missing : 0u) < 2u;
    }

    /// Add a curve with enough hits to the best curves of its first hit.
    __device__ void keep(const followed_curve& curve) const
    {
        if (!(curve.chi2 < cuts_.max_chi2)) return;
        const float penalty = static_cast<float>(curve.n_missing) * cuts_.missing_hit_penalty;
        keep_better(best_[curve.first], {curve.chi2 + penalty,
                                         curve.values[n_x_steps],
                                         curve.values[n_x_steps + 1u],
                                         curve.values[n_x_steps + 2u],
                                         first_ + curve.first,
                                         curve.last,
                                         {curve.hits[0], curve.hits[1], curve.hits[2], curve.hits[3]},
                                         n_x_layers - curve.n_missing});
    }

#if HLT_ON_GPU
    __device__ void begin_curve(uint32_t pair, uint32_t i, uint32_t hit)
    {
        followed_curve curve = curve_through(pair, i, hit);
#pragma unroll
        for (uint32_t step = 1; step < n_x_steps; ++step)
            if (step > i && !take_step(curve, step, hits_.zone(search_.layers[step], half_))) return;
        keep(curve);
    }

    __device__ void follow_begun(uint32_t) {}
#else
    static constexpr uint32_t max_together = 64;

    void begin_curve(uint32_t pair, uint32_t i, uint32_t hit)
    {
        if (n_begun_together_ == max_together) follow_begun(i + 1u);
        begun_[n_begun_together_++] = curve_through(pair, i, hit);
    }

    /// Follow the begun curves layer by layer, all of them through one layer before the next.
    void follow_begun(uint32_t next_step)
    {
        uint32_t n = n_begun_together_;
        for (uint32_t i = next_step; i < n_x_steps; ++i) {
            const scifi_zone zone = hits_.zone(search_.layers[i], half_);
            uint32_t n_left = 0;
            for (uint32_t k = 0; k < n; ++k) {
                followed_curve curve = begun_[k];
                const bool goes_on = take_step(curve, i, zone);
                begun_[n_left] = curve;
                n_left += static_cast<uint32_t>(goes_on);
            }
            n = n_left;
        }
        for (uint32_t k = 0; k < n; ++k) keep(begun_[k]);
        n_begun_together_ = 0;
    }

    followed_curve begun_[max_together];
    uint32_t n_begun_together_ = 0;
#endif

    const x_search& search_;
    seeding_hit_view hits_;
    const uint32_t* cells_[2];
    uint32_t windows_[2];
    uint32_t half_;
    x_search_cuts cuts_;
    bool strict_;
    uint32_t first_ = 0;
    two_curves* best_ = nullptr;
    // Pairs, by their place among the pairs of one step.
    uint32_t n_pairs_ = 0;
    uint32_t firsts_[pairs_together], lasts_[pairs_together];
    float x_first_[pairs_together] = {}, x_last_[pairs_together] = {}, slopes_[pairs_together],
          curvatures_[pairs_together];
    float places_[2][pairs_together];
    uint32_t n_begun_[2][firsts_together];
};

}  // namespace hlt
