// The UT search on the CPU: the common kernel on a batch of tracks. Their windows are filled together (windows_cpu.h).
// The pairs of a track are listed, and a vector of them is compared with each hit of the other two layers. Lines and
// momenta are fitted in lanes. The common kernel processes tracks with more pairs than usual.
#pragma once

#include "framework/device/lowest_lane.h"
#include "lhcb/ut/windows_cpu.h"

namespace hlt {

/// Entries of a column of a window, selected by lanes below ut_window_places.
inline __attribute__((always_inline)) float_wide of_window(const float (&column)[ut_window_places],
                                                           const uint_wide& place)
{
#if defined(HLT_AVX512)
    float_wide low, high;
    static_assert(max_ut_window_hits <= 2u * n_wide && ut_window_places >= 2u * n_wide);
    load_wide(low, column);
    load_wide(high, column + n_wide);
    return (float_wide)_mm512_permutex2var_ps((__m512)low, (__m512i)place, (__m512)high);
#else
    return values_at(column, place);
#endif
}

/// nearest_in_window for several lines. Returns the place of the nearest hit + 1, or 0.
inline __attribute__((always_inline)) uint_wide nearest_of_lines(const ut_window& window, const float_wide& u,
                                                                 const float_wide& z, const float_wide& slope,
                                                                 float max_distance)
{
    int_wide nearest = int_wide{} + static_cast<int32_t>(__float_as_uint(max_distance) & ~ut_pick_bits);
    const uint32_t n_hits = window.n_hits;
    for (uint32_t i = 0; i < n_hits; ++i) {
        const float_wide difference = u + slope * (window.z[i] - z) - window.u[i];
        int_wide bits;
        std::memcpy(&bits, &difference, sizeof bits);
        bits = (bits & static_cast<int32_t>(0x7fffffffu & ~ut_pick_bits)) | static_cast<int32_t>(i + 1u);
        nearest = bits < nearest ? bits : nearest;
    }
    return (uint_wide)nearest & ut_pick_bits;
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

/// Continuations that wait for a fit in lanes, in groups of at most n_wide for one track. A missing hit has no weight.
struct ut_waiting_lines {
    static constexpr uint32_t places = 8u * n_wide, groups = 2u * ut_tracks_at_once;

    float u[n_ut_layers][places], z[n_ut_layers][places], weight[n_ut_layers][places], n_hits[places];
    uint32_t picks[places];  // a byte for each layer
    float chi2[places], u_kink[places], slope[places], quality[places];
    uint32_t of_track[groups], first[groups + 1u] = {};
    uint32_t n_groups = 0;

    uint32_t n() const { return first[n_groups]; }
    bool is_full() const { return n() + n_wide > places || n_groups == groups; }
};
constexpr uint32_t bits_of_pick = 8, mask_of_pick = (1u << bits_of_pick) - 1u;
static_assert(n_ut_layers * bits_of_pick == 32u && max_ut_window_hits < mask_of_pick);

/// The search for the tracks of a batch whose windows are filled. Pairs of one track are in lanes: they share the
/// windows of the other two layers, so each hit there is compared with all of these lines at once.
class ut_line_search {
  public:
    ut_line_search(const ut_track_batch& batch, const ut_search_limits& limits, uint32_t max_pairs)
        : batch_(batch), limits_(limits), max_pairs_(min_of(max_pairs, most_pairs_))
    {
        for (uint32_t i = 0; i < batch.n; ++i) {
            best[i] = no_ut_continuation;
            n_pairs_[i] = 0;
            try_pairs<0, 2, 1, 3>(i);
        }
        fit_lines();
        // Continuations without layer 0 or 2, if they can still be better.
        for (uint32_t i = 0; i < batch.n; ++i)
            if (!is_left_out(i) && best[i].quality > limits.three_hits_penalty) try_pairs<3, 1, 2, 0>(i);
        fit_lines();
    }

    /// True if there were too many pairs for this search; it then has no best continuation.
    bool is_left_out(uint32_t i) const { return n_pairs_[i] > max_pairs_; }

    ut_continuation best[ut_tracks_at_once];

  private:
    static constexpr uint32_t most_pairs_ = 256;
    static constexpr uint32_t pairs_of_windows_ = max_ut_window_hits * max_ut_window_hits;
    /// A pair is the hit of the first layer, and that of the other one in the lowest bits.
    static constexpr uint32_t bits_of_place_ = 5, mask_of_place_ = (1u << bits_of_place_) - 1u;
    static_assert(max_ut_window_hits <= mask_of_place_ && mask_of_place_ < ut_window_places);

    /// List the allowed pairs of two windows, in the order of try_ut_pairs. Returns their number.
    uint32_t list_pairs(const ut_window& one, const ut_window& other)
    {
        uint32_t n = 0;
        for (uint32_t block = 0; block < one.n_hits; block += ut_stride)
            for (uint32_t first = 0; first < other.n_hits; first += ut_stride)
                for (uint32_t k = block; k < min_of(one.n_hits, block + ut_stride); ++k) {
                    const uint32_t bits = partners_of_eight(other, first, one.u[k], one.z[k], limits_);
                    store_packed(&pairs_[n], lane_numbers + (k << bits_of_place_ | first), bits);
                    n += static_cast<uint32_t>(__builtin_popcount(bits));
                }
        return n;
    }

    template <uint32_t a, uint32_t b, uint32_t c, uint32_t d>
    void try_pairs(uint32_t i)
    {
        const ut_window* const windows = batch_.windows[i];
        const uint32_t n = list_pairs(windows[a], windows[b]);
        n_pairs_[i] += n;
        if (is_left_out(i)) {
            best[i] = no_ut_continuation;
            return;
        }
        for (uint32_t first = 0; first < n; first += n_wide) {
            if (waiting_.is_full()) fit_lines();
            uint_wide pair;
            load_wide(pair, pairs_ + first);
            try_lines<a, b, c, d>(i, pair, first_bits(n - first));
        }
    }

    /// As try_ut_pair, for the lanes of `there`.
    template <uint32_t a, uint32_t b, uint32_t c, uint32_t d>
    void try_lines(uint32_t i, const uint_wide& pair, uint32_t there)
    {
        const ut_window* const windows = batch_.windows[i];
        const auto& weights = batch_.weights[i];
        uint_wide place[n_ut_layers];
        float_wide u[n_ut_layers], z[n_ut_layers], weight[n_ut_layers];
        place[a] = pair >> bits_of_place_ & mask_of_place_;
        place[b] = pair & mask_of_place_;
        for (const uint32_t layer : {a, b}) {
            u[layer] = of_window(windows[layer].u, place[layer]);
            z[layer] = of_window(windows[layer].z, place[layer]);
            weight[layer] = of_window(weights[layer], place[layer]);
        }
        const float_wide slope = (u[b] - u[a]) / (z[b] - z[a]);
        const uint_wide near_c = nearest_of_lines(windows[c], u[a], z[a], slope, limits_.max_distance);
        const uint_wide near_d = nearest_of_lines(windows[d], u[b], z[b], slope, limits_.max_distance);
        const int_wide has_c = near_c != 0u, has_d = near_d != 0u;
        const bool takes_three = limits_.three_hits_penalty < best[i].quality;
        const uint32_t bits = there & bits_of(takes_three ? has_c | has_d : has_c & has_d);
        if (bits == 0u) return;
        place[c] = near_c - 1u;
        place[d] = near_d - 1u;
        const uint_wide picks = place[a] << bits_of_pick * a | place[b] << bits_of_pick * b |
                                (place[c] & mask_of_pick) << bits_of_pick * c |
                                (place[d] & mask_of_pick) << bits_of_pick * d;
        for (const uint32_t layer : {c, d}) {
            const int_wide has = layer == c ? has_c : has_d;
            place[layer] &= mask_of_place_;
            weight[layer] = has ? of_window(weights[layer], place[layer]) : float_wide{};
            u[layer] = has ? of_window(windows[layer].u, place[layer]) : float_wide{};
            z[layer] = has ? of_window(windows[layer].z, place[layer]) : float_wide{} + z_ut_kink;
        }
        const uint32_t to = waiting_.n();
        for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
            store_packed_wide(waiting_.u[layer] + to, u[layer], bits);
            store_packed_wide(waiting_.z[layer] + to, z[layer], bits);
            store_packed_wide(waiting_.weight[layer] + to, weight[layer], bits);
        }
        const float_wide four = float_wide{} + static_cast<float>(n_ut_layers);
        store_packed_wide(waiting_.n_hits + to, has_c & has_d ? four : four - 1.f, bits);
        store_packed_wide(waiting_.picks + to, picks, bits);
        waiting_.of_track[waiting_.n_groups] = i;
        waiting_.first[++waiting_.n_groups] = to + static_cast<uint32_t>(__builtin_popcount(bits));
    }

    /// As the end of try_ut_pair.
    void fit_lines()
    {
        for (uint32_t first = 0; first < waiting_.n(); first += n_wide) fit_lines(first);
        for (uint32_t group = 0; group < waiting_.n_groups; ++group) take_best(group);
        waiting_.n_groups = 0;
    }

    void fit_lines(uint32_t first)
    {
        ut_points_of<float_wide> points;
        for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
            load_wide(points.u[layer], waiting_.u[layer] + first);
            load_wide(points.z[layer], waiting_.z[layer] + first);
            load_wide(points.weight[layer], waiting_.weight[layer] + first);
        }
        load_wide(points.n_hits, waiting_.n_hits + first);
        const ut_line_of<float_wide> lines = fit_ut_kink(points);
        constexpr float all = static_cast<float>(n_ut_layers);
        const float_wide none{};
        const float_wide quality = lines.chi2 + (points.n_hits < all ? none + limits_.three_hits_penalty : none);
        store_wide(waiting_.chi2 + first, lines.chi2);
        store_wide(waiting_.u_kink + first, lines.u_kink);
        store_wide(waiting_.slope + first, lines.slope);
        store_wide(waiting_.quality + first,
                   lines.chi2 < limits_.max_chi2 ? quality : none + no_ut_continuation.quality);
    }

    /// Of equally good continuations the first one counts.
    void take_best(uint32_t group)
    {
        const uint32_t first = waiting_.first[group], n = waiting_.first[group + 1u] - first;
        float_wide quality;
        load_wide(quality, waiting_.quality + first);
        quality = wide_numbers < n ? quality : float_wide{} + no_ut_continuation.quality;
        const float lowest = lowest_wide(quality);
        ut_continuation& of_track = best[waiting_.of_track[group]];
        if (!(lowest < of_track.quality)) return;
        const uint32_t at = first + lowest_bit(bits_where<wide_comparison::at_most>(quality, float_wide{} + lowest));
        of_track.quality = lowest;
        of_track.line = {waiting_.chi2[at], waiting_.u_kink[at], waiting_.slope[at]};
        for (uint32_t layer = 0; layer < n_ut_layers; ++layer) {
            const uint32_t pick = waiting_.picks[at] >> bits_of_pick * layer & mask_of_pick;
            of_track.picks[layer] = pick == mask_of_pick ? no_ut_pick : pick;
        }
    }

    const ut_track_batch& batch_;
    const ut_search_limits& limits_;
    const uint32_t max_pairs_;
    uint32_t n_pairs_[ut_tracks_at_once];
    uint32_t pairs_[pairs_of_windows_ + n_wide];
    ut_waiting_lines waiting_;
};

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
    if (!hlt::compares_eight_lanes) return ut_search_tracks(p, dim3{event, 1, 1});
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
        const hlt::ut_line_search search(batch, limits, max_pairs);
        hlt::write_ut_candidates(p, batch, hits, search.best);
        for (uint32_t i = 0; i < batch.n; ++i)
            if (search.is_left_out(i)) hlt::search_ut_track(p, hits, limits, event, batch.track[i], max_pairs);
    }
}
