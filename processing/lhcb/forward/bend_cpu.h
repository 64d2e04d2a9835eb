// The functions of long_track_parameters that the forward search asks for on the CPU, one in each lane, and what an
// event needs of the layers.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/forward/hypothesis.cuh"
#include "lhcb/forward/x_hits.cuh"
#include "lhcb/long_tracks/layers.cuh"

namespace hlt {

/// The lane of each function; the first five are those of bend_functions, in their order.
enum bend_lane : uint32_t {
    z_magnet_lane,
    curvature_lane,
    cubic_lane,
    y_shift_lane,
    y_slope_lane,
    kick_of_momentum_lane,
    ut_kick_lane,
    ut_z_magnet_lane,
    n_bend_lanes
};

/// What does not depend on the track, made once for each event.
struct forward_tables {
    float8 bend[n_bend_powers][n_tx_powers][n_ty_powers];
    float8 stereo_z, stereo_dx_dy, stereo_dz_dy;  // the stereo layers, two lanes repeat the last one
    uint8x32 stereo_layers;
    float8 seed_z[n_seeds], seed_dz_dy[n_seeds];  // first, last and other x layers of a seed, two lanes repeat

    explicit forward_tables(const long_track_parameters& parameters)
    {
        const float (*const tables[n_bend_lanes])[n_tx_powers][n_ty_powers] = {
            parameters.z_magnet, parameters.curvature,        parameters.cubic,   parameters.y_shift,
            parameters.y_slope,  parameters.kick_of_momentum, parameters.ut_kick, parameters.ut_z_magnet};
        for (uint32_t k = 0; k < n_bend_powers; ++k)
            for (uint32_t i = 0; i < n_tx_powers; ++i)
                for (uint32_t j = 0; j < n_ty_powers; ++j)
                    for (uint32_t lane = 0; lane < n_bend_lanes; ++lane) bend[k][i][j][lane] = tables[lane][k][i][j];
        for (uint32_t lane = 0; lane < 8u; ++lane) {
            const uint32_t layer = stereo_layer(min_of(lane, n_scifi_stereo_layers - 1u));
            stereo_layers[lane] = layer;
            stereo_z[lane] = parameters.layer_z[layer];
            stereo_dx_dy[lane] = parameters.layer_dx_dy[layer];
            stereo_dz_dy[lane] = parameters.layer_dz_dy[layer];
            for (uint32_t seed = 0; seed < n_seeds; ++seed) {
                const layer_seed layers = seed_layers(seed);
                const uint32_t x_layer = lane == 0u   ? layers.first
                                         : lane == 1u ? layers.last
                                                      : layers.others[(lane - 2u) % 4u];
                seed_z[seed][lane] = parameters.layer_z[x_layer];
                seed_dz_dy[seed][lane] = parameters.layer_dz_dy[x_layer];
            }
        }
    }
};

/// The functions for the slopes of one track: polynomials of the kink, the last three of s.
class bend_lanes {
  public:
    /// As at_slopes.
    bend_lanes(const forward_tables& tables, const velo_line& line)
    {
        const float tx2 = line.tx * line.tx, ty2 = line.ty * line.ty, tx = line.tx;
        const float8 of_odd_power{tx, tx, tx, 1.f, 1.f, tx, tx, tx},
            of_even_power{1.f, 1.f, 1.f, tx, tx, 1.f, 1.f, 1.f};
        for (uint32_t k = 0; k < n_bend_powers; ++k) {
            const auto& table = tables.bend[k];
            const float8 first = table[0][0] + ty2 * (table[0][1] + ty2 * table[0][2]);
            const float8 second = table[1][0] + ty2 * (table[1][1] + ty2 * table[1][2]);
            a_[k] = (first + tx2 * second) * ((k & 1u) != 0u ? of_odd_power : of_even_power);
        }
    }

    inline __attribute__((always_inline)) float8 values(float bend) const
    {
        return a_[0] + bend * (a_[1] + bend * (a_[2] + bend * (a_[3] + bend * a_[4])));
    }

    inline __attribute__((always_inline)) bend_at_kink at(float kink) const
    {
        const float8 of = values(kink);
        return {kink, of[z_magnet_lane], of[curvature_lane], of[cubic_lane], of[y_shift_lane], of[y_slope_lane]};
    }

    /// As the function of bend.cuh.
    float kink_of(const velo_line& line, float s) const
    {
        return tx_behind(line, s * c_per_gev_to_mev * values(s)[kick_of_momentum_lane]) - line.tx;
    }

    /// As the function of hypothesis.cuh.
    void set_bend_in_ut(const velo_line& line, float s, ut_residuals& residuals) const
    {
        const float8 of = values(s);
        const float change = tx_behind(line, s * c_per_gev_to_mev * of[ut_kick_lane]) - line.tx;
        const float kink = tx_behind(line, s * c_per_gev_to_mev * of[kick_of_momentum_lane]) - line.tx;
        residuals.a_per_kink = change * (z_middle_of_ut - of[ut_z_magnet_lane]) / kink;
        residuals.b_per_kink = change / kink;
    }

  private:
    float8 a_[n_bend_powers];
};

/// x_seed, with the layers in lanes.
struct x_seed_lanes {
    layer_seed layers;
    float z_first;
    float begin, end;
    float straight_first, straight_last;
    parabola ratio;
    float to_tolerance, per_dx;
    parabola kink_per_rise;
    float8 straight, share0, share1, share2;  // of the other layers, from lane 2 on

    x_seed_lanes(uint32_t seed, const forward_tables& tables, const velo_line& line, const bend_at_kink (&nodes)[3],
                 const forward_hypothesis& where, const forward_cuts& cuts)
        : layers(seed_layers(seed))
    {
        const float8 z = tables.seed_z[seed] + tables.seed_dz_dy[seed] * (line.y_at(tables.seed_z[seed]) + where.shift);
        z_first = z[0];
        float8 share_at[3];
        float lever[3], difference[3], dx_at[3], rise_at[3], y[3];
        for (uint32_t i = 0; i < 3u; ++i) {
            const float8 of_layers = nodes[i].lever(z);
            const float of_first = of_layers[0];
            lever[i] = of_first + where.offset_per_kink;
            difference[i] = of_layers[1] - of_first;
            dx_at[i] = nodes[i].kink * lever[i];
            rise_at[i] = nodes[i].kink * difference[i];
            y[i] = (lever[i] + difference[i]) / lever[i];
            share_at[i] = (of_layers - of_first) / difference[i];
        }
        ratio = parabola_through(dx_at, y);
        for (uint32_t i = 0; i < 3u; ++i) y[i] = 1.f / difference[i];
        kink_per_rise = parabola_through(rise_at, y);
        const float8 first = (share_at[1] - share_at[0]) / (rise_at[1] - rise_at[0]);
        const float8 second = (share_at[2] - share_at[1]) / (rise_at[2] - rise_at[1]);
        share2 = (second - first) / (rise_at[2] - rise_at[0]);
        share1 = first - share2 * (rise_at[0] + rise_at[1]);
        share0 = share_at[0] - rise_at[0] * (share1 + rise_at[0] * share2);
        straight = line.x_at(z) + where.offset;
        straight_first = straight[0];
        straight_last = straight[1];
        to_tolerance = cuts.n_sigma * difference[1] / lever[1];
        per_dx = where.sigma_offset.per_kink / lever[1];
        begin = straight_first + dx_at[0] - cuts.n_sigma * where.sigma_offset(where.low);
        end = straight_first + dx_at[2] + cuts.n_sigma * where.sigma_offset(where.high);
    }

    /// Where some pairs are expected in the k-th of the other layers.
    inline __attribute__((always_inline)) float_wide place(uint32_t k, const float_wide& dx,
                                                           const float_wide& rise) const
    {
        return straight[2u + k] + dx + rise * (share0[2u + k] + rise * (share1[2u + k] + rise * share2[2u + k]));
    }

    /// Where one pair is expected in all other layers, from lane 2 on.
    inline __attribute__((always_inline)) float8 places(float dx, float rise) const
    {
        return straight + dx + rise * (share0 + rise * (share1 + rise * share2));
    }
};

}  // namespace hlt
