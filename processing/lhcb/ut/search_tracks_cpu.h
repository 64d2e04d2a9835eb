// The UT search on the CPU: the common kernel on a batch of tracks. Their windows are filled together (windows_cpu.h),
// their pairs listed, and lines and momenta are fitted in lanes. The common kernel processes tracks with more pairs
// than usual.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/ut/windows_cpu.h"

namespace hlt {

/// nearest_in_window, with eight hits in one step.
inline __attribute__((always_inline)) uint32_t nearest_of_eights(const ut_window& window, float u, float z, float slope,
                                                                 float max_distance)
{
    uint32_t nearest = __float_as_uint(max_distance) & ~ut_pick_bits;
    for (uint32_t i = 0; i < window.n_hits; i += ut_stride) {
        float8 hit_u, hit_z;
        load8(hit_u, window.u + i);
        load8(hit_z, window.z + i);
        const float8 difference = u + slope * (hit_z - z) - hit_u;
        constexpr uint8x32 number{1, 2, 3, 4, 5, 6, 7, 8};
        uint8x32 bits;
        std::memcpy(&bits, &difference, sizeof bits);
        bits = (bits & (0x7fffffffu & ~ut_pick_bits)) | (number + i);
        nearest = min_of(nearest, lowest_lane(bits));
    }
    return (nearest & ut_pick_bits) - 1u;
}

/// ut_partners, with all hits in one step.
inline __attribute__((always_inline)) uint32_t partners_of_eight(const ut_window& window, uint32_t first, float u,
                                                                 float z, const ut_search_limits& limits)
{
    float8 hit_u, hit_z;
    load8(hit_u, window.u + first);
    load8(hit_z, window.z + first);
    const float8 dz = hit_z - z, du = hit_u - u, distance = dz < 0.f ? -dz : dz;
    const float8 at_kink = u * dz + du * (z_ut_kink - z);
    const float8 most_du = limits.max_slope_difference * distance, most = limits.max_kink_distance * distance;
    return bits_of((du <= most_du) & (-du <= most_du) & (at_kink <= most) & (-at_kink <= most));
}

/// Continuations of several tracks, queued for a fit in lanes.
struct ut_continuations {
    float u[n_ut_layers][n_wide] = {}, z[n_ut_layers][n_wide] = {}, weight[n_ut_layers][n_wide] = {};
    float n_hits[n_wide] = {};

    void set(uint32_t l, const ut_points& points)
    {
        for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
            u[layer][l] = points.u[layer];
            z[layer][l] = points.z[layer];
            weight[layer][l] = points.weight[layer];
        }
        n_hits[l] = points.n_hits;
    }

    ut_points_of<float_wide> points() const
    {
        ut_points_of<float_wide> points;
        for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
            load_wide(points.u[layer], u[layer]);
            load_wide(points.z[layer], z[layer]);
            load_wide(points.weight[layer], weight[layer]);
        }
        load_wide(points.n_hits, n_hits);
        return points;
    }
};

/// The search for the tracks of a batch whose windows are filled.
class ut_line_search {
  public:
    ut_line_search(const ut_track_batch& batch, const ut_hits_of_event& hits, const ut_search_limits& limits,
                   uint32_t max_pairs)
        : batch_(batch), hits_(hits), limits_(limits), max_pairs_(min_of(max_pairs, most_pairs_))
    {
        for (uint32_t i = 0; i < batch.n; ++i) {
            best[i] = no_ut_continuation;
            n_pairs_[i] = 0;
        }
        try_pairs<0, 2, 1, 3>([](uint32_t) { return true; });
        // Continuations without layer 0 or 2, if they can still be better.
        try_pairs<3, 1, 2, 0>([&](uint32_t i) { return best[i].quality > limits.three_hits_penalty; });
    }

    /// True if there were too many pairs for this search; it then has no best continuation.
    bool is_left_out(uint32_t i) const { return n_pairs_[i] > max_pairs_; }

    ut_continuation best[ut_tracks_at_once];

  private:
    static constexpr uint32_t most_pairs_ = 256;
    static constexpr uint32_t pairs_of_windows_ = max_ut_window_hits * max_ut_window_hits;

    /// List the pairs of layers a and b: track, hit of a, hit of b, a byte each.
    template <uint32_t a, uint32_t b, typename Wanted>
    void list_pairs(const Wanted& wanted)
    {
        n_listed_ = 0;
        for (uint32_t i = 0; i < batch_.n; ++i) {
            if (is_left_out(i) || !wanted(i)) continue;
            const uint32_t before = n_listed_;
            const ut_window &one = batch_.windows[i][a], &other = batch_.windows[i][b];
            // In the order of try_ut_pairs.
            for (uint32_t block = 0; block < one.n_hits; block += ut_stride)
                for (uint32_t first = 0; first < other.n_hits; first += ut_stride)
                    for (uint32_t k = block; k < min_of(one.n_hits, block + ut_stride); ++k) {
                        const uint32_t bits = partners_of_eight(other, first, one.u[k], one.z[k], limits_);
                        store_packed(&listed_[n_listed_], lane_numbers + (i << 16u | k << 8u | first), bits);
                        n_listed_ += static_cast<uint32_t>(__builtin_popcount(bits));
                    }
            n_pairs_[i] += n_listed_ - before;
            if (!is_left_out(i)) continue;
            n_listed_ = before;
            best[i] = no_ut_continuation;
        }
    }

    template <uint32_t a, uint32_t b, uint32_t c, uint32_t d, typename Wanted>
    void try_pairs(const Wanted& wanted)
    {
        list_pairs<a, b>(wanted);
        n_waiting_ = 0;
        for (uint32_t number = 0; number < n_listed_; ++number) {
            const uint32_t i = listed_[number] >> 16u, k = listed_[number] >> 8u & 0xffu, j = listed_[number] & 0xffu;
            const ut_window* const windows = batch_.windows[i];
            const float u = windows[a].u[k], z = windows[a].z[k], other_u = windows[b].u[j], other_z = windows[b].z[j];
            const float slope = (other_u - u) / (other_z - z);
            uint32_t picks[n_ut_layers];
            picks[a] = k;
            picks[b] = j;
            picks[c] = nearest_of_eights(windows[c], u, z, slope, limits_.max_distance);
            picks[d] = nearest_of_eights(windows[d], other_u, other_z, slope, limits_.max_distance);
            waiting_.set(n_waiting_, points_of(windows, picks, hits_));
            std::memcpy(picks_[n_waiting_], picks, sizeof picks);
            of_track_[n_waiting_] = i;
            const uint32_t n_missing = (picks[c] == no_ut_pick ? 1u : 0u) + (picks[d] == no_ut_pick ? 1u : 0u);
            const float penalty = n_missing == 0u ? 0.f : limits_.three_hits_penalty;
            n_waiting_ += ((n_missing > 1u) | (penalty >= best[i].quality)) ? 0u : 1u;
            if (n_waiting_ == n_wide) fit_lines();
        }
        fit_lines();
    }

    /// As the end of try_ut_pair.
    void fit_lines()
    {
        const ut_points_of<float_wide> points = waiting_.points();
        const ut_line_of<float_wide> lines = fit_ut_kink(points);
        constexpr float all = static_cast<float>(n_ut_layers);
        const float_wide none{};
        const float_wide quality = lines.chi2 + (points.n_hits < all ? none + limits_.three_hits_penalty : none);
        const uint32_t close = bits_where<wide_comparison::less>(lines.chi2, none + limits_.max_chi2);
        float chi2_of[n_wide], u_kink_of[n_wide], slope_of[n_wide], quality_of[n_wide];
        store_wide(chi2_of, lines.chi2);
        store_wide(u_kink_of, lines.u_kink);
        store_wide(slope_of, lines.slope);
        store_wide(quality_of, quality);
        for (uint32_t bits = close & first_bits(n_waiting_); bits != 0u; bits &= bits - 1u) {
            const uint32_t l = lowest_bit(bits);
            ut_continuation& of_track = best[of_track_[l]];
            if (!(quality_of[l] < of_track.quality)) continue;
            of_track.quality = quality_of[l];
            of_track.line = {chi2_of[l], u_kink_of[l], slope_of[l]};
            std::memcpy(of_track.picks, picks_[l], sizeof of_track.picks);
        }
        n_waiting_ = 0;
    }

    const ut_track_batch& batch_;
    const ut_hits_of_event& hits_;
    const ut_search_limits& limits_;
    const uint32_t max_pairs_;
    uint32_t n_pairs_[ut_tracks_at_once];
    uint32_t listed_[ut_tracks_at_once * most_pairs_ + pairs_of_windows_ + ut_stride];
    uint32_t n_listed_;
    ut_continuations waiting_;
    uint32_t of_track_[n_wide], picks_[n_wide][n_ut_layers];
    uint32_t n_waiting_;
};

/// Fit the momenta of the tracks of a batch and write their continuations.
template <typename Parameters>
void write_ut_candidates(const Parameters& p, const ut_track_batch& batch, const ut_hits_of_event& hits,
                         const ut_continuation* best)
{
    uint32_t of_track[ut_tracks_at_once], n = 0;
    for (uint32_t i = 0; i < batch.n; ++i) {
        of_track[n] = i;
        n += best[i].quality < no_ut_continuation.quality ? 1u : 0u;
    }
    for (uint32_t first = 0; first < n; first += n_wide) {
        const uint32_t n_now = min_of(n - first, n_wide);
        ut_continuations waiting;
        float tx_of[n_wide], ty_of[n_wide], to_qop_of[n_wide], u_kink_of[n_wide], slope_of[n_wide];
        for (uint32_t l = 0; l < n_wide; ++l) {
            const uint32_t i = of_track[first + min_of(l, n_now - 1u)];
            waiting.set(l, points_of(batch.windows[i], best[i].picks, hits));
            tx_of[l] = batch.tx[i];
            ty_of[l] = batch.ty[i];
            to_qop_of[l] = ut_to_qop(*p.ut_tables, batch.seed(i));
            u_kink_of[l] = best[i].line.u_kink;
            slope_of[l] = best[i].line.slope;
        }
        float_wide tx, ty, to_qop;
        ut_line_of<float_wide> lines{};
        load_wide(tx, tx_of);
        load_wide(ty, ty_of);
        load_wide(to_qop, to_qop_of);
        load_wide(lines.u_kink, u_kink_of);
        load_wide(lines.slope, slope_of);
        const ut_points_of<float_wide> points = waiting.points();
        const float_wide z_last = z_of_last(points);
        const ut_momentum_of<float_wide> fits = fit_ut_momentum(*p.ut_geometry, to_qop, tx, ty, points, lines, z_last);
        float z_last_of[n_wide], chi2_of[n_wide], qop_of[n_wide], u_last_of[n_wide];
        store_wide(z_last_of, z_last);
        store_wide(chi2_of, fits.chi2);
        store_wide(qop_of, fits.qop);
        store_wide(u_last_of, fits.u_last);
        store_wide(slope_of, fits.slope);
        for (uint32_t l = 0; l < n_now; ++l) {
            const uint32_t i = of_track[first + l];
            write_ut_candidate(p, batch.track[i], batch.seed(i), batch.windows[i], best[i].picks, waiting.n_hits[l],
                               z_last_of[l], {chi2_of[l], qop_of[l], u_last_of[l], slope_of[l]}, best[i].quality);
        }
    }
}

}  // namespace hlt

HLT_CPU_FORM(ut_search_tracks)
{
    if (!p.takes(event)) return;
    const hlt::ut_hits_of_event hits = hlt::ut_hits_of(p, event);
    const hlt::ut_search_limits limits = hlt::ut_search_limits_of(p);
    const uint32_t first_track = p.velo_end.first(event), n_tracks = p.velo_tracks.count[event];
    const uint32_t end_track = first_track + n_tracks;
    const uint32_t max_pairs = p.max_pairs / hlt::max_of(n_tracks, 1u);
    std::memset(p.ut_candidates.hit_count + first_track, 0, n_tracks);

    hlt::ut_track_batch batch;
    hlt::ut_window_filler windows(*p.ut_geometry, hits);
    for (uint32_t track = first_track; track < end_track;) {
        for (batch.n = 0; track < end_track && batch.n < hlt::ut_tracks_at_once; ++track) {
            const hlt::ut_seed seed{p.velo_end.x[track], p.velo_end.y[track], p.velo_end.tx[track],
                                    p.velo_end.ty[track]};
            batch.track[batch.n] = track;
            batch.x[batch.n] = seed.x;
            batch.y[batch.n] = seed.y;
            batch.tx[batch.n] = seed.tx;
            batch.ty[batch.n] = seed.ty;
            batch.n += ((p.velo_tracks.backward[track] == 0u) & hlt::points_to_ut(p, seed)) ? 1u : 0u;
        }
        for (uint32_t i = 0; i < hlt::ut_tracks_at_once; ++i) {
            const float tolerance = hlt::ut_tolerance(p, batch.seed(i));
            for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer) batch.tolerance[layer][i] = tolerance;
        }
        for (uint32_t i = 0; i < batch.n; ++i) {
            const float* const deflection = hlt::ut_layer_deflection(*p.ut_tables, batch.ty[i]);
            for (uint32_t layer = 0; layer < hlt::n_ut_layers; ++layer) {
                batch.tolerance[layer][i] /= deflection[layer];
                batch.per_deflection[layer][i] = hlt::ut_y_per_deflection / deflection[layer];
            }
        }
        windows.fill(batch);
        const hlt::ut_line_search search(batch, hits, limits, max_pairs);
        hlt::write_ut_candidates(p, batch, hits, search.best);
        for (uint32_t i = 0; i < batch.n; ++i)
            if (search.is_left_out(i)) hlt::search_ut_track(p, hits, limits, event, batch.track[i], max_pairs);
    }
}
