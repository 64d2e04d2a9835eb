// Adaptive fit of primary vertices on the CPU: the common kernel, which has the steps, with the nearness of each track
// to each seed computed once. It makes the denominators, and in each turn it is subtracted from them.
#pragma once

#include "lhcb/primary_vertices/multi_fit.cuh"

namespace hlt {

/// Seeds whose nearness is kept: scratch has pv_fit_track_width columns, of which one has the denominators.
constexpr uint32_t pv_kept_seeds = pv_fit_track_width - 1u;

/// Nearness of all tracks to a seed on the beam line.
inline void pv_find_nearness(const pv_fit_tracks& tracks, pv_point seed, float* __restrict__ nearness)
{
    for (uint32_t i = 0; i < tracks.n; ++i)
        nearness[i] = pv_nearness(pv_residual_of(tracks.column_values(i, 0.f), seed).chi2);
}

/// Sums over the tracks, lane by lane. `own`: their nearness to the seed.
inline void pv_add_tracks(const pv_fit_tracks& tracks, const float* __restrict__ own, const pv_fit& fit,
                          pv_lane_sums& sum)
{
    static_assert(pv_lanes_at_once == pv_lanes);
    for (uint32_t base = 0; base < tracks.n; base += pv_lanes) {
        for (uint32_t k = 0; k < pv_lanes; ++k) {
            const pv_fit_track track = tracks.at(base + k);
            const pv_residual residual = pv_residual_of(track, fit.vertex);
            const float used = residual.chi2 < fit.max_chi2 ? 1.f : 0.f;
            pv_add_track(track, fit, residual, pv_nearness(residual.chi2), own[base + k], used, sum, k);
        }
    }
}

}  // namespace hlt

HLT_CPU_FORM(pv_beamline_multi_fit)
{
    if (!p.takes(event)) return;
    const uint32_t first = p.pv_tracks.first(event);
    const uint32_t n_seeds = p.pv_seeds.count[event];
    const float* const seeds = p.pv_seeds.z + p.pv_seeds.first(event);
    hlt::primary_vertex* const fitted = p.pv_seeds.fitted + p.pv_seeds.first(event);
    const hlt::pv_fit_columns columns{p.pv_tracks.x + first,  p.pv_tracks.y + first,  p.pv_tracks.z + first,
                                      p.pv_tracks.tx + first, p.pv_tracks.ty + first, p.pv_tracks.fit_weight + first};
    const hlt::pv_fit_tracks tracks{columns, p.scratch.tracks + hlt::pv_fit_track_width * first,
                                    hlt::pv_padded(p.pv_tracks.count[event])};
    const float beamline_x = p.velo_geometry->beamline_x, beamline_y = p.velo_geometry->beamline_y;

    // 1. Denominators. Behind the last seed that is kept, one column serves all.
    const auto nearness_of = [&](uint32_t seed) {
        return tracks.scratch + tracks.n * (1u + hlt::min_of(seed, hlt::pv_kept_seeds - 1u));
    };
    std::memset(tracks.scratch, 0, tracks.n * sizeof *tracks.scratch);
    for (uint32_t seed = 0; seed < n_seeds; ++seed) {
        float* __restrict__ const nearness = nearness_of(seed);
        hlt::pv_find_nearness(tracks, {beamline_x, beamline_y, seeds[seed]}, nearness);
        for (uint32_t i = 0; i < tracks.n; ++i) tracks.scratch[i] += nearness[i];
    }

    // 2. Fits.
    const float cut = hlt::pv_nearness(p.chi2_cut);
    for (uint32_t seed = 0; seed < n_seeds; ++seed) {
        float* const own = nearness_of(seed);
        const hlt::pv_point at_seed{beamline_x, beamline_y, seeds[seed]};
        if (n_seeds > hlt::pv_kept_seeds && seed + 1u >= hlt::pv_kept_seeds)
            hlt::pv_find_nearness(tracks, at_seed, own);
        const float min_tracks = static_cast<float>(at_seed.z < hlt::pv_z_smog2 ? p.min_tracks_smog2 : p.min_tracks);
        hlt::primary_vertex vertex{beamline_x, beamline_y, at_seed.z, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
        for (uint32_t turn = 0; turn < p.max_iterations; ++turn) {
            const hlt::pv_fit fit{at_seed, {vertex.x, vertex.y, vertex.z}, cut, p.max_chi2, turn == 0};
            hlt::pv_lane_sums lanes = {};
            hlt::pv_add_tracks(tracks, own, fit, lanes);
            float sum[hlt::n_pv_sums];
            for (uint32_t s = 0; s < hlt::n_pv_sums; ++s) sum[s] = hlt::pv_tree_sum(lanes[s]);
            vertex.n_tracks = 0.f;
            float step_z;
            if (!(sum[hlt::pv_sum_count] >= min_tracks) ||
                !hlt::pv_move_vertex(vertex, sum[hlt::pv_sum_a], sum[hlt::pv_sum_b], sum[hlt::pv_sum_c],
                                     sum[hlt::pv_sum_d], sum[hlt::pv_sum_gx], sum[hlt::pv_sum_gy], sum[hlt::pv_sum_gz],
                                     step_z))
                break;
            vertex.n_tracks = sum[hlt::pv_sum_w];
            if (step_z < p.max_dz_converged && step_z > -p.max_dz_converged) break;
        }
        const float dx = vertex.x - beamline_x, dy = vertex.y - beamline_y;
        if (!(dx * dx + dy * dy < p.max_rho2)) vertex.n_tracks = 0.f;
        fitted[seed] = vertex;
    }
}
