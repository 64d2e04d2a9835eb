// The smoother of long tracks on the CPU: the lanes of vector registers take hits of different tracks after a static
// schedule (docs/physics/smoothed-states.md; D. H. Campora Perez, O. Awile, Concurrency and Computation 30 (2018)
// e4483, section 2.1).
//
// Tracks with most hits come first; a lane takes the next track when its own ends. So a track has one lane and adjacent
// rows. The forward filter takes the rows upwards, the backward filter and the average downwards. A lane computes
// exactly what a thread of the common kernel computes.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/tracks/kalman/smooth_velo.cuh"

namespace hlt {

constexpr uint32_t max_smoothing_rows = max_smoothed_states / n_wide + max_velo_track_hits;

/// A track in its lane. It has the rows first_row .. first_row + n - 1, from the smallest z on.
struct scheduled_track {
    uint16_t track;  // in the event
    uint16_t first_row;
    uint8_t n;
    uint8_t lane;
    const uint16_t* last_hit;  // the hit with the smallest z; hits are stored from large to small z
    smoothed_state* states;
};

/// Bits of lanes that begin, or end, a track in a row.
struct smoothing_row {
    uint16_t in, out;
};

/// What a lane takes with a track: its number, q/p, slopes of the first states, noise of the slopes for material of 1.
struct lane_constants {
    alignas(64) uint32_t track[n_wide];
    float qop[n_wide], tx[n_wide], ty[n_wide], scattering_x[n_wide], scattering_y[n_wide];
};

/// The predictions of the forward filter for one coordinate.
struct kept_lanes {
    float x[n_wide], t[n_wide], c00[n_wide], c20[n_wide], c22[n_wide], determinant[n_wide];
};

/// Hits of a row, x without the field once the forward filter has been there; noise of the slopes in front of the hit.
struct smoothing_lanes {
    float x[n_wide], y[n_wide], z[n_wide];
    float noise_x[n_wide], noise_y[n_wide];
    uint32_t id[n_wide];
    kept_lanes in_x, in_y;
};

struct smoothing_buffers {
    alignas(64) smoothing_lanes lanes[max_smoothing_rows];
    smoothing_row rows[max_smoothing_rows];
    uint16_t taken[max_smoothing_rows][n_wide];  // of `tracks`: what a lane begins in a row
    uint16_t given[max_smoothing_rows][n_wide];  // what a lane ends in a row
    scheduled_track tracks[max_long_tracks + n_wide];
    alignas(64) float constants[5][max_long_tracks + n_wide];  // qop, tx, ty, scattering_x, scattering_y
    uint32_t n_tracks, n_rows;
};

inline int_wide lanes_of_bits(uint32_t bits) { return ((uint_wide{} + bits) >> wide_numbers & 1u) != 0u; }

inline __attribute__((always_inline)) void keep_lanes(kept_lanes& place, const line_estimate<float_wide>& from)
{
    store_wide(place.x, from.line.x);
    store_wide(place.t, from.line.t);
    store_wide(place.c00, from.line.c00);
    store_wide(place.c20, from.line.c20);
    store_wide(place.c22, from.line.c22);
    store_wide(place.determinant, from.determinant);
}

inline __attribute__((always_inline)) void load_lanes(line_estimate<float_wide>& to, const kept_lanes& place)
{
    load_wide(to.line.x, place.x);
    load_wide(to.line.t, place.t);
    load_wide(to.line.c00, place.c00);
    load_wide(to.line.c20, place.c20);
    load_wide(to.line.c22, place.c22);
    load_wide(to.determinant, place.determinant);
}

inline __attribute__((always_inline)) void choose(line_estimate<float_wide>& to, const int_wide& where,
                                                  const line_estimate<float_wide>& other)
{
    to.line.x = where ? other.line.x : to.line.x;
    to.line.t = where ? other.line.t : to.line.t;
    to.line.c00 = where ? other.line.c00 : to.line.c00;
    to.line.c20 = where ? other.line.c20 : to.line.c20;
    to.line.c22 = where ? other.line.c22 : to.line.c22;
    to.determinant = where ? other.determinant : to.determinant;
}

/// Begin a filter in some lanes.
inline __attribute__((always_inline)) void begin_lanes(const long_filter& filter, long_fit_line<float_wide>& line,
                                                       const int_wide& where, const float_wide& position,
                                                       const float* slopes)
{
    float_wide slope;
    load_wide(slope, slopes);
    const float_wide none{};
    line.x = where ? position : line.x;
    line.t = where ? slope : line.t;
    line.c00 = where ? none + filter.hit_variance : line.c00;
    line.c20 = where ? none : line.c20;
    line.c22 = where ? none + filter.start_slope_variance : line.c22;
}

/// Order the tracks by falling number of hits and give each to the lane that ends first.
inline void schedule_tracks(smoothing_buffers& b)
{
    uint16_t places[max_velo_track_hits + 2u] = {};
    for (uint32_t i = 0; i < b.n_tracks; ++i) ++places[max_velo_track_hits + 1u - b.tracks[i].n];
    for (uint32_t i = 0, sum = 0; i < max_velo_track_hits + 2u; ++i) {
        const uint32_t n = places[i];
        places[i] = static_cast<uint16_t>(sum);
        sum += n;
    }
    uint16_t order[max_long_tracks];
    for (uint32_t i = 0; i < b.n_tracks; ++i)
        order[places[max_velo_track_hits + 1u - b.tracks[i].n]++] = static_cast<uint16_t>(i);

    uint32_t ends[n_wide] = {};
    b.n_rows = 0;
    for (uint32_t i = 0; i < b.n_tracks; ++i) {
        scheduled_track& track = b.tracks[order[i]];
        uint32_t lane = 0;
        for (uint32_t l = 1; l < n_wide; ++l) lane = ends[l] < ends[lane] ? l : lane;
        const uint32_t first = ends[lane], last = first + track.n - 1u;
        for (; b.n_rows <= last; ++b.n_rows) b.rows[b.n_rows] = {0, 0};
        track.first_row = static_cast<uint16_t>(first);
        track.lane = static_cast<uint8_t>(lane);
        b.rows[first].in = static_cast<uint16_t>(b.rows[first].in | 1u << lane);
        b.rows[last].out = static_cast<uint16_t>(b.rows[last].out | 1u << lane);
        b.taken[first][lane] = b.given[last][lane] = order[i];
        ends[lane] = last + 1u;
    }
    for (uint32_t l = 0; l < n_wide; ++l)
        for (uint32_t row = ends[l]; row < b.n_rows; ++row)
            b.lanes[row].x[l] = b.lanes[row].y[l] = b.lanes[row].z[l] = 0.f;
}

/// Place the hits of each track in its lane.
template <typename Parameters>
void place_hits(const Parameters& p, uint32_t event, smoothing_buffers& b)
{
    const uint32_t first_hit = p.velo_hits.first(event);
    const float *const x = p.velo_hits.x + first_hit, *const y = p.velo_hits.y + first_hit,
                       *const z = p.velo_hits.z + first_hit;
    const uint32_t* const id = p.velo_hits.id + first_hit;
    for (uint32_t i = 0; i < b.n_tracks; ++i) {
        const scheduled_track& track = b.tracks[i];
        for (uint32_t k = 0; k < track.n; ++k) {
            const uint32_t hit = track.last_hit[-static_cast<int32_t>(k)];
            smoothing_lanes& lanes = b.lanes[track.first_row + k];
            lanes.x[track.lane] = x[hit];
            lanes.y[track.lane] = y[hit];
            lanes.z[track.lane] = z[hit];
            lanes.id[track.lane] = id[hit];
        }
    }
}

/// The constants of all tracks, computed for n_wide tracks at once.
inline void find_constants(const velo_field& field, const long_filter& filter, const float* fitted_qop,
                           smoothing_buffers& b)
{
    for (uint32_t group = 0; group < b.n_tracks; group += n_wide) {
        alignas(64) float raw[7][n_wide];
        for (uint32_t l = 0; l < n_wide; ++l) {
            const scheduled_track& track = b.tracks[min_of(group + l, b.n_tracks - 1u)];
            const smoothing_lanes &front = b.lanes[track.first_row], &end = b.lanes[track.first_row + track.n - 1u];
            raw[0][l] = front.x[track.lane];
            raw[1][l] = front.y[track.lane];
            raw[2][l] = front.z[track.lane];
            raw[3][l] = end.x[track.lane];
            raw[4][l] = end.y[track.lane];
            raw[5][l] = end.z[track.lane];
            raw[6][l] = fitted_qop[track.track];
        }
        velo_hit_of_track<float_wide> first, last;
        float_wide qop;
        load_wide(first.x, raw[0]);
        load_wide(first.y, raw[1]);
        load_wide(first.z, raw[2]);
        load_wide(last.x, raw[3]);
        load_wide(last.y, raw[4]);
        load_wide(last.z, raw[5]);
        load_wide(qop, raw[6]);
        long_fit_state<float_wide> momentum;
        long_fit_momentum(momentum, qop);
        const smoothing_hit<float_wide> front = smoothing_hit_of(field, filter, momentum.qop, first);
        const smoothing_hit<float_wide> end = smoothing_hit_of(field, filter, momentum.qop, last);
        const smoothing_track<float_wide> found = smoothing_track_of(momentum.qop, front, end, momentum.inverse_p2);
        store_wide(b.constants[0] + group, found.qop);
        store_wide(b.constants[1] + group, found.tx);
        store_wide(b.constants[2] + group, found.ty);
        store_wide(b.constants[3] + group, found.scattering_x);
        store_wide(b.constants[4] + group, found.scattering_y);
    }
}

/// Lanes whose bits are set take the constants of the tracks that they begin or end.
inline void take_constants(const smoothing_buffers& b, uint32_t bits, const uint16_t* numbers, lane_constants& lanes)
{
    for (; bits != 0u; bits &= bits - 1u) {
        const uint32_t l = lowest_bit(bits), i = numbers[l];
        lanes.track[l] = b.tracks[i].track;
        lanes.qop[l] = b.constants[0][i];
        lanes.tx[l] = b.constants[1][i];
        lanes.ty[l] = b.constants[2][i];
        lanes.scattering_x[l] = b.constants[3][i];
        lanes.scattering_y[l] = b.constants[4][i];
    }
}

/// The forward filter: rows upwards.
inline void filter_lanes_forward(const velo_field& field, const long_filter& filter, smoothing_buffers& b)
{
    lane_constants constants{};
    long_fit_line<float_wide> x{}, y{};
    float_wide before{}, qop{}, scattering_x{}, scattering_y{};
    for (uint32_t row = 0; row < b.n_rows; ++row) {
        const uint32_t in = b.rows[row].in;
        if (in != 0u) {
            take_constants(b, in, b.taken[row], constants);
            load_wide(qop, constants.qop);
            load_wide(scattering_x, constants.scattering_x);
            load_wide(scattering_y, constants.scattering_y);
        }
        smoothing_lanes& lanes = b.lanes[row];
        velo_hit_of_track<float_wide> raw;
        load_wide(raw.x, lanes.x);
        load_wide(raw.y, lanes.y);
        load_wide(raw.z, lanes.z);
        const smoothing_hit<float_wide> next = smoothing_hit_of(field, filter, qop, raw);
        const float_wide dz = next.z - before;
        const float_wide noise_x = scattering_x * next.material, noise_y = scattering_y * next.material;
        const line_estimate<float_wide> to_x = predict_forward(filter, x, dz, noise_x);
        const line_estimate<float_wide> to_y = predict_forward(filter, y, dz, noise_y);
        store_wide(lanes.x, next.x);
        store_wide(lanes.noise_x, noise_x);
        store_wide(lanes.noise_y, noise_y);
        keep_lanes(lanes.in_x, to_x);
        keep_lanes(lanes.in_y, to_y);
        x = smoothing_update(filter.hit_variance, to_x, next.x).line;
        y = smoothing_update(filter.hit_variance, to_y, next.y).line;
        if (in != 0u) {
            const int_wide begins = lanes_of_bits(in);
            begin_lanes(filter, x, begins, next.x, constants.tx);
            begin_lanes(filter, y, begins, next.y, constants.ty);
        }
        before = next.z;
    }
}

constexpr uint32_t n_smoothed_words = sizeof(smoothed_state) / sizeof(float);

/// Write the lanes whose bits are set to the places of their hits, and move these to the hits before. Vectors that turn
/// rows into columns were not faster here.
inline void put_lanes(const float (&words)[n_smoothed_words][n_wide], uint32_t bits, smoothed_state** places)
{
    for (; bits != 0u; bits &= bits - 1u) {
        const uint32_t l = lowest_bit(bits);
        float of_lane[n_smoothed_words];
        for (uint32_t i = 0; i < n_smoothed_words; ++i) of_lane[i] = words[i][l];
        std::memcpy(static_cast<void*>(places[l]--), of_lane, sizeof of_lane);
    }
}

/// The backward filter and the average with the predictions of the forward filter: rows downwards.
inline void smooth_lanes_backward(const velo_field& field, const long_filter& filter, smoothing_buffers& b)
{
    const float w = filter.hit_variance;
    lane_constants constants{};
    smoothed_state* places[n_wide] = {};
    long_fit_line<float_wide> x{}, y{};
    float_wide before{}, qop{}, noise_x{}, noise_y{};
    uint32_t busy = 0;
    for (uint32_t row = b.n_rows; row-- > 0u;) {
        const uint32_t in = b.rows[row].in, out = b.rows[row].out;
        if (out != 0u) {
            take_constants(b, out, b.given[row], constants);
            load_wide(qop, constants.qop);
            for (uint32_t bits = out; bits != 0u; bits &= bits - 1u) {
                const scheduled_track& track = b.tracks[b.given[row][lowest_bit(bits)]];
                places[track.lane] = track.states + (track.n - 1u);
            }
            busy |= out;
        }
        const smoothing_lanes& lanes = b.lanes[row];
        float_wide next_x, next_y, next_z;
        load_wide(next_x, lanes.x);
        load_wide(next_y, lanes.y);
        load_wide(next_z, lanes.z);
        const float_wide dz = next_z - before;
        const line_estimate<float_wide> to_x = predict_backward(filter, x, dz, noise_x);
        const line_estimate<float_wide> to_y = predict_backward(filter, y, dz, noise_y);
        line_estimate<float_wide> kept_x, kept_y;
        load_lanes(kept_x, lanes.in_x);
        load_lanes(kept_y, lanes.in_y);
        line_estimate<float_wide> both_x = smoothing_average(kept_x, to_x);
        line_estimate<float_wide> both_y = smoothing_average(kept_y, to_y);
        if (in != 0u) {
            const int_wide begins = lanes_of_bits(in);
            choose(both_x, begins, to_x);
            choose(both_y, begins, to_y);
        }
        if (out != 0u) {
            const int_wide ends = lanes_of_bits(out);
            choose(both_x, ends, kept_x);
            choose(both_y, ends, kept_y);
        }
        const measured_line<float_wide> of_x = smoothing_update(w, both_x, next_x);
        const measured_line<float_wide> of_y = smoothing_update(w, both_y, next_y);
        alignas(64) float words[n_smoothed_words][n_wide];
        store_wide(words[0], of_x.line.x + bend_of_position(field, qop, 0.f, next_z));
        store_wide(words[1], of_y.line.x);
        store_wide(words[2], next_z);
        store_wide(words[3], of_x.line.t + bend_of_slope(field, qop, 0.f, next_z));
        store_wide(words[4], of_y.line.t);
        store_wide(words[5], of_x.line.c00);
        store_wide(words[6], of_x.line.c20);
        store_wide(words[7], of_x.line.c22);
        store_wide(words[8], of_y.line.c00);
        store_wide(words[9], of_y.line.c20);
        store_wide(words[10], of_y.line.c22);
        store_wide(words[11], of_x.residual);
        store_wide(words[12], of_y.residual);
        store_wide(words[13], of_x.chi2 + of_y.chi2);
        std::memcpy(words[14], lanes.id, sizeof lanes.id);
        std::memcpy(words[15], constants.track, sizeof constants.track);
        put_lanes(words, busy, places);
        x = smoothing_update(w, to_x, next_x).line;
        y = smoothing_update(w, to_y, next_y).line;
        if (out != 0u) {
            const int_wide ends = lanes_of_bits(out);
            begin_lanes(filter, x, ends, next_x, constants.tx);
            begin_lanes(filter, y, ends, next_y, constants.ty);
        }
        before = next_z;
        load_wide(noise_x, lanes.noise_x);
        load_wide(noise_y, lanes.noise_y);
        busy &= ~in;
    }
}

}  // namespace hlt

HLT_CPU_FORM(kalman_smooth_velo)
{
    if (!hlt::compares_eight_lanes) return kalman_smooth_velo(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    const hlt::velo_field field = *p.velo_field;
    const hlt::long_filter filter = hlt::long_filter_of(p);
    const uint32_t first_track = p.long_tracks.first(event), n_tracks = p.long_tracks.count[event];
    const uint32_t first_velo_track = p.velo_tracks.first(event);
    const float* const qop = p.long_tracks.fitted_qop + first_track;
    hlt::smoothed_state* const states = p.smoothed_states.state + p.smoothed_states.first(event);
    hlt::smoothing_buffers b;
    b.n_tracks = 0;
    uint32_t place = 0;
    for (uint32_t track = 0; track < n_tracks; ++track) {
        const uint32_t velo_track = first_velo_track + p.long_tracks.velo_track[first_track + track];
        const uint32_t n = p.velo_tracks.hit_count[velo_track];
        if (place + n > hlt::max_smoothed_states) {
            p.events.flags[event] |= hlt::overflow;
            break;
        }
        if (n > 1u) {
            hlt::scheduled_track& scheduled = b.tracks[b.n_tracks++];
            scheduled.track = static_cast<uint16_t>(track);
            scheduled.n = static_cast<uint8_t>(n);
            scheduled.last_hit = p.velo_tracks.hits + velo_track * hlt::max_velo_track_hits + (n - 1u);
            scheduled.states = states + place;
        } else if (n == 1u) {
            hlt::smooth_track(field, filter, qop[track], hlt::velo_hits_of(p, event, first_track + track, true),
                              states + place);
            hlt::name_states(p, event, track, states + place);
        }
        place += n;
    }
    p.smoothed_states.count[event] = place;
    if (b.n_tracks == 0u) return;
    hlt::schedule_tracks(b);
    hlt::place_hits(p, event, b);
    hlt::find_constants(field, filter, qop, b);
    hlt::filter_lanes_forward(field, filter, b);
    hlt::smooth_lanes_backward(field, filter, b);
}
