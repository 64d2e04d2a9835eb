// Adaptive fit of primary vertices on the CPU: the steps of the common kernel, in wide vectors. Two quantities are the
// same in each turn and are computed once: the nearness of each track to each seed, which is summed into the
// denominators and subtracted from them, and tx^2 + ty^2 of each track.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/primary_vertices/multi_fit.cuh"

namespace hlt {

/// Number of seeds whose nearness is stored: of the pv_fit_track_width columns of scratch, one has the denominators and
/// one the slopes.
constexpr uint32_t pv_kept_seeds = pv_fit_track_width - 2u;

/// Wide lanes of tracks from track i on, without their denominators.
struct pv_wide_tracks {
    float_wide x, y, z, tx, ty, weight;

    __attribute__((always_inline)) pv_wide_tracks(const pv_fit_columns& columns, uint32_t i)
    {
        load_wide(x, columns.x + i);
        load_wide(y, columns.y + i);
        load_wide(z, columns.z + i);
        load_wide(tx, columns.tx + i);
        load_wide(ty, columns.ty + i);
        load_wide(weight, columns.weight + i);
    }
};

/// As pv_residual.
struct pv_wide_residual {
    float_wide x, y, chi2;

    __attribute__((always_inline)) pv_wide_residual(const pv_wide_tracks& track, const pv_point& point)
    {
        const float_wide dz = point.z - track.z;
        x = point.x - (track.x + track.tx * dz);
        y = point.y - (track.y + track.ty * dz);
        chi2 = (x * x + y * y) * track.weight;
    }
};

/// Nearness of all tracks to a seed on the beam line.
inline void pv_find_nearness(const pv_fit_tracks& tracks, const pv_point& seed, float* __restrict__ nearness)
{
    for (uint32_t i = 0; i < tracks.n; i += n_wide)
        store_wide(nearness + i,
                   exp_negative<float_wide>(-0.5f * pv_wide_residual(pv_wide_tracks(tracks.columns, i), seed).chi2));
}

using four_lanes = float __attribute__((vector_size(16)));

/// Four sums in the fixed tree, after lanes at a distance of half the lanes were added.
inline __attribute__((always_inline)) four_lanes pv_four_sums(const float (*lanes)[pv_lanes / 2u])
{
    four_lanes rows[4];
    for (uint32_t s = 0; s < 4u; ++s) {
        float8 low, high;
        load8(low, lanes[s]);
        load8(high, lanes[s] + 8);
        const float8 eight = low + high;
        rows[s] = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
    }
    const four_lanes first = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
    const four_lanes first_behind = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
    const four_lanes second = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
    const four_lanes second_behind = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    const four_lanes one = first + first_behind, other = second + second_behind;
    return __builtin_shufflevector(one, other, 0, 1, 4, 5) + __builtin_shufflevector(one, other, 2, 3, 6, 7);
}

/// The terms of some tracks in a turn, before their addition. A part has every (pv_lanes / n_wide)-th vector.
struct pv_turn {
    static constexpr uint32_t n = 8u * pv_lanes;  // tracks
    static constexpr uint32_t n_parts = pv_lanes / n_wide;
    alignas(64) float x[n], y[n], chi2[n];  // of pv_residual
    alignas(64) float near[n];              // 0 for tracks beyond max_chi2
    alignas(64) float denominator[n];
    uint32_t vectors[n_parts][n / pv_lanes];  // first tracks of the vectors with a track within max_chi2
    uint32_t n_vectors[n_parts];
};

constexpr uint32_t n_pv_lane_sums = n_pv_sums - 1u;  // without the count
using pv_wide_sums = float_wide[pv_lanes / n_wide][n_pv_lane_sums];
static_assert(pv_sum_count == 0 && n_pv_lane_sums == 8u);

/// Fill a turn with the tracks from `first` to `end`. `rest`: their denominators without the nearness to this seed.
/// Returns the number of tracks within max_chi2. The terms of the others are 0. An event of many collisions has few
/// vectors with a track near a given vertex, and only these need the exponential and the additions.
inline uint32_t pv_find_turn(pv_turn& turn, const pv_fit_tracks& tracks, uint32_t first, uint32_t end,
                             const float* __restrict__ rest, const pv_fit& fit)
{
    uint32_t count = 0;
    for (uint32_t& of_part : turn.n_vectors) of_part = 0;
    for (uint32_t at = 0; at < end - first; at += n_wide) {
        const pv_wide_residual residual(pv_wide_tracks(tracks.columns, first + at), fit.vertex);
        const uint32_t within = bits_where<wide_comparison::less>(residual.chi2, float_wide{} + fit.max_chi2);
        count += static_cast<uint32_t>(__popc(static_cast<int>(within)));
        store_wide(turn.x + at, residual.x);
        store_wide(turn.y + at, residual.y);
        store_wide(turn.chi2 + at, residual.chi2);
        const uint32_t part = at / n_wide % pv_turn::n_parts;
        turn.vectors[part][turn.n_vectors[part]] = at;
        turn.n_vectors[part] += within != 0u ? 1u : 0u;
    }
    for (uint32_t part = 0; part < pv_turn::n_parts; ++part) {
        for (uint32_t v = 0; v < turn.n_vectors[part]; ++v) {
            const uint32_t at = turn.vectors[part][v];
            float_wide chi2, others;
            load_wide(chi2, turn.chi2 + at);
            load_wide(others, rest + first + at);
            const float_wide near = exp_negative<float_wide>(-0.5f * chi2);
            store_wide(turn.near + at, chi2 < fit.max_chi2 ? near : float_wide{});
            store_wide(turn.denominator + at, fit.cut + near + others);
        }
    }
    return count;
}

/// Add a turn, lane by lane, as pv_add_track does. `slope2`: tx^2 + ty^2 of the tracks.
inline void pv_add_turn(const pv_turn& turn, const pv_fit_columns& columns, uint32_t first,
                        const float* __restrict__ slope2, pv_wide_sums& sums)
{
    for (uint32_t part = 0; part < pv_turn::n_parts; ++part) {
        float_wide(&sum)[n_pv_lane_sums] = sums[part];
        float_wide w_sum = sum[0], a = sum[1], b = sum[2], c = sum[3], d = sum[4], gx = sum[5], gy = sum[6];
        float_wide gz = sum[7];
        for (uint32_t vector = 0; vector < turn.n_vectors[part]; ++vector) {
            const uint32_t at = turn.vectors[part][vector], i = first + at;
            float_wide x, y, near, denominator, tx, ty, weight, slopes;
            load_wide(x, turn.x + at);
            load_wide(y, turn.y + at);
            load_wide(near, turn.near + at);
            load_wide(denominator, turn.denominator + at);
            load_wide(tx, columns.tx + i);
            load_wide(ty, columns.ty + i);
            load_wide(weight, columns.weight + i);
            load_wide(slopes, slope2 + i);
            const float_wide w = near / denominator;
            const float_wide v = w * weight;
            w_sum += w;
            a += v;
            b -= v * tx;
            c -= v * ty;
            d += v * slopes;
            gx += v * x;
            gy += v * y;
            gz -= v * (tx * x + ty * y);
        }
        const float_wide all[n_pv_lane_sums] = {w_sum, a, b, c, d, gx, gy, gz};
        for (uint32_t s = 0; s < n_pv_lane_sums; ++s) sum[s] = all[s];
    }
}

/// Sums over the tracks. The nearness, with its long dependency chains, and the additions have separate loops: a core
/// then processes more tracks at once.
inline void pv_add_tracks(const pv_fit_tracks& tracks, const float* __restrict__ rest, const float* __restrict__ slope2,
                          const pv_fit& fit, float* sum)
{
    pv_wide_sums sums = {};
    pv_turn turn;
    uint32_t count = 0;
    for (uint32_t first = 0; first < tracks.n; first += pv_turn::n) {
        const uint32_t end = min_of(first + pv_turn::n, tracks.n);
        count += pv_find_turn(turn, tracks, first, end, rest, fit);
        pv_add_turn(turn, tracks.columns, first, slope2, sums);
    }
    float lanes[n_pv_lane_sums][pv_lanes / 2u];
    constexpr uint32_t half = pv_lanes / n_wide / 2u;
    for (uint32_t s = 0; s < n_pv_lane_sums; ++s)
        for (uint32_t part = 0; part < half; ++part)
            store_wide(lanes[s] + part * n_wide, sums[part][s] + sums[part + half][s]);
    sum[pv_sum_count] = static_cast<float>(count);
    for (uint32_t s = 0; s < n_pv_lane_sums; s += 4u) {
        const four_lanes four = pv_four_sums(lanes + s);
        std::memcpy(sum + 1u + s, &four, sizeof four);
    }
}

/// pv_fit_seeds.
template <typename Cuts>
inline void pv_fit_seeds_on_cpu(const Cuts& p, const pv_fit_tracks& tracks, const float* seeds, uint32_t n_seeds,
                                const velo_beam_line& beam_line, primary_vertex* fitted)
{
    const pv_fit_columns& columns = tracks.columns;
    // 1. Denominators. All seeds behind the last stored one share a column.
    float* __restrict__ const denominator = tracks.scratch;
    float* __restrict__ const slope2 = tracks.scratch + tracks.n;
    const auto nearness_of = [&](uint32_t seed) {
        return tracks.scratch + tracks.n * (2u + min_of(seed, pv_kept_seeds - 1u));
    };
    for (uint32_t i = 0; i < tracks.n; ++i) {
        denominator[i] = 0.f;
        slope2[i] = columns.tx[i] * columns.tx[i] + columns.ty[i] * columns.ty[i];
    }
    for (uint32_t seed = 0; seed < n_seeds; ++seed) {
        float* __restrict__ const nearness = nearness_of(seed);
        pv_find_nearness(tracks, pv_on_beam_line(beam_line, seeds[seed]), nearness);
        for (uint32_t i = 0; i < tracks.n; ++i) denominator[i] += nearness[i];
    }

    // 2. Fits.
    const float cut = pv_nearness(p.chi2_cut);
    for (uint32_t seed = 0; seed < n_seeds; ++seed) {
        float* __restrict__ const rest = nearness_of(seed);
        const pv_point at_seed = pv_on_beam_line(beam_line, seeds[seed]);
        if (n_seeds > pv_kept_seeds && seed + 1u >= pv_kept_seeds) pv_find_nearness(tracks, at_seed, rest);
        for (uint32_t i = 0; i < tracks.n; ++i) rest[i] = denominator[i] - rest[i];
        const float min_tracks = static_cast<float>(at_seed.z < pv_z_smog2 ? p.min_tracks_smog2 : p.min_tracks);
        primary_vertex vertex{at_seed.x, at_seed.y, at_seed.z, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
        for (uint32_t turn = 0; turn < p.max_iterations; ++turn) {
            const pv_fit fit{at_seed, {vertex.x, vertex.y, vertex.z}, cut, p.max_chi2, turn == 0};
            float sum[n_pv_sums];
            pv_add_tracks(tracks, rest, slope2, fit, sum);
            vertex.n_tracks = 0.f;
            float step_z;
            if (!(sum[pv_sum_count] >= min_tracks) ||
                !pv_move_vertex(vertex, sum[pv_sum_a], sum[pv_sum_b], sum[pv_sum_c], sum[pv_sum_d], sum[pv_sum_gx],
                                sum[pv_sum_gy], sum[pv_sum_gz], step_z))
                break;
            vertex.n_tracks = sum[pv_sum_w];
            if (step_z < p.max_dz_converged && step_z > -p.max_dz_converged) break;
        }
        const float dx = vertex.x - beam_line.x_at(vertex.z), dy = vertex.y - beam_line.y_at(vertex.z);
        if (!(dx * dx + dy * dy < p.max_rho2)) vertex.n_tracks = 0.f;
        fitted[seed] = vertex;
    }
}

}  // namespace hlt

HLT_CPU_FORM(pv_beamline_multi_fit)
{
    if (!hlt::compares_eight_lanes) return pv_beamline_multi_fit(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const uint32_t first = p.pv_tracks.first(event);
    const hlt::pv_fit_columns columns{p.pv_tracks.x + first,  p.pv_tracks.y + first,  p.pv_tracks.z + first,
                                      p.pv_tracks.tx + first, p.pv_tracks.ty + first, p.pv_tracks.fit_weight + first};
    const hlt::pv_fit_tracks tracks{columns, p.scratch.tracks + hlt::pv_fit_track_width * first,
                                    hlt::pv_padded(p.pv_tracks.count[event])};
    hlt::pv_fit_seeds_on_cpu(p, tracks, p.pv_seeds.z + p.pv_seeds.first(event), p.pv_seeds.count[event],
                             hlt::velo_beam_line(*p.velo_geometry), p.pv_seeds.fitted + p.pv_seeds.first(event));
}
