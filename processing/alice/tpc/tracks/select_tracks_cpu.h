// The selection with tracklets (wide_tracklets.h) and fits of tracks in the lanes of vectors.
#pragma once

#include "alice/tpc/tracks/select_tracks.cuh"
#include "alice/tpc/tracks/wide_tracklets.h"

namespace hlt {

/// Up to n_wide tracks with their fits.
class wide_fits {
  public:
    explicit wide_fits(const tracklet_input& input) : in(input) {}

    bool is_full() const { return n_ == n_wide; }
    uint32_t size() const { return n_; }
    const track_hits& hits(uint32_t i) const { return hits_[i]; }
    void clear() { n_ = 0; }

    void add(const track_hits& found)
    {
        const uint32_t l = n_++;
        hits_[l] = found;
        for (uint32_t i = 0; i < found.n; ++i) {
            const uint32_t at = found.n - 1u - i, row = found.row[at];
            row_[i][l] = row;
            place_[i][l] = in.places[in.rows[row].first + found.number[at]];
        }
    }

    /// fit_inwards for all tracks; bit i is set if track i has a fit.
    uint32_t fit(float max_fit_chi2)
    {
        uint_wide last{}, step{};
        uint32_t longest = 0;
        for (uint32_t l = 0; l < n_wide; ++l) {
            // Lanes without a track have a copy of the first one.
            const uint32_t n = hits_[l < n_ ? l : 0u].n;
            if (l >= n_) copy_first(l);
            last[l] = n - 1u;
            step[l] = min_of((n - 1u) / 2u, 8u);
            longest = max_of(longest, n);
        }
        int_wide alive =
            start_state(in.filter, point_of(2u * step), point_of(step), point_of(uint_wide{}), false, state_);
        alive &= wide_numbers < n_;
        uint_wide fitted = uint_wide{} + 1u;
        for (uint32_t i = 1; i < longest; ++i) {
            const int_wide wanted = alive & (last >= i);
            const tpc_point_of<float_wide> at = point_of((uint_wide)wanted & i);
            const int_wide moved = propagate_where(wanted, in.filter, state_, at.x);
            const tpc_errors_of<float_wide> errors = errors_at(in.filter, state_, at.z, at.pad);
            const int_wide is_far =
                (fitted >= tpc_trusted_clusters) & (distance2(state_, errors, at.y, at.z) > max_fit_chi2);
            const int_wide taken = moved & ~is_far;
            update_where(taken, state_, errors, at.y, at.z);
            fitted -= (uint_wide)taken;
            alive &= (moved | ~wanted) & (is_within(in.filter, state_.s) | ~taken);
        }
        return bits_of(alive);
    }

    tpc_state state(uint32_t l) const
    {
        tpc_state t;
        const char* const read = reinterpret_cast<const char*>(&state_) + l * sizeof(float);
        for (uint32_t k = 0; k < sizeof t / sizeof(float); ++k)
            std::memcpy(reinterpret_cast<char*>(&t) + k * sizeof(float), read + k * sizeof(float_wide), sizeof(float));
        return t;
    }

  private:
    void copy_first(uint32_t l)
    {
        for (uint32_t i = 0; i < hits_[0].n; ++i) {
            row_[i][l] = row_[i][0];
            place_[i][l] = place_[i][0];
        }
    }
    tpc_point_of<float_wide> point_of(const uint_wide& i) const
    {
        const uint_wide word = i * n_wide + wide_numbers;
        const uint_wide row = words_of<4>(&row_[0][0], word), place = words_of<4>(&place_[0][0], word);
        return {floats_of(in.row_x, row), y_of(place), z_of(place), floats_of(in.pads, row)};
    }

    const tracklet_input& in;
    uint32_t n_ = 0;
    track_hits hits_[n_wide];
    wide_state state_;
    uint32_t row_[tpc_rows][n_wide], place_[tpc_rows][n_wide];  // inwards
};

}  // namespace hlt

HLT_CPU_FORM(tpc_select_tracks)
{
    if constexpr (!hlt::compares_eight_lanes) return tpc_select_tracks(p, dim3{event, 1, 1});
    if (!p.takes(event)) return;
    hlt::tpc_row rows[hlt::tpc_rows];
    uint32_t scratch[hlt::max_block_size / hlt::warp_size];
    hlt::tabulate_rows(p.tpc_slices.row_counts + event * hlt::tpc_rows, p.tpc_slices.boxes + event * hlt::tpc_chambers,
                       rows, scratch);
    const uint32_t whole_event = p.event_of(event), first = p.tpc_clusters.first(event);
    const uint32_t* const inputs = p.tpc_clusters.inputs + first;
    const uint16_t* const charges = p.tpc_clusters.charges + first;
    const uint32_t first_input = p.tpc_slices.input[event].first_cluster;
    const uint32_t* const weights = p.tpc_clusters.weights + first;
    hlt::tpc_track* const tracks = p.tpc_slice_tracks.track + p.tpc_slice_tracks.first(event);
    const uint32_t n_track_places = p.tpc_slice_tracks.first(event + 1u) - p.tpc_slice_tracks.first(event);
    uint32_t* const hits_of_tracks = p.tpc_slice_hits.cluster + p.tpc_slice_hits.first(event);
    const uint32_t n_places = p.tpc_slice_hits.first(event + 1u) - p.tpc_slice_hits.first(event);
    const uint32_t* const starts = p.tpc_start_hits.cluster + p.tpc_start_hits.first(event);
    const uint32_t* const owned = p.tpc_start_hits.owned + p.tpc_start_hits.first(event);
    const uint32_t n_starts = p.tpc_slices.start_hits[event];
    const uint32_t min_owned = hlt::fewest_own(p.min_clusters, p.max_shared);
    const hlt::tracklet_input in = hlt::tracklet_input_of(p, rows, event);

    uint32_t n_tracks = 0, n_hits = 0, kept_tracks = 0, kept_hits = 0;
    hlt::wide_fits fits(in);
    const auto write = [&] {
        if (fits.size() == 0u) return;
        const uint32_t good = fits.fit(p.max_fit_chi2);
        for (uint32_t i = 0; i < fits.size(); ++i) {
            if ((good >> i & 1u) == 0u) continue;
            const hlt::track_hits& found = fits.hits(i);
            if (n_tracks < n_track_places && n_hits + found.n <= n_places) {
                uint32_t charge = 0;
                for (uint32_t k = 0; k < found.n; ++k) {
                    const uint32_t input = inputs[rows[found.row[k]].first + found.number[k]];
                    hits_of_tracks[n_hits + k] = input;
                    charge += charges[input - first_input];
                }
                tracks[n_tracks] =
                    hlt::record_of(fits.state(i), event - whole_event * hlt::tpc_slices, found.n, charge);
                kept_tracks = n_tracks + 1u;
                kept_hits = n_hits + found.n;
            }
            ++n_tracks;
            n_hits += found.n;
        }
        fits.clear();
    };
    hlt::wide_tracklets tracklets(in);
    uint32_t ids[hlt::tpc_seeds_together], chosen[hlt::tpc_seeds_together], n_chosen = 0;
    for (uint32_t id = 0; id < n_starts; ++id) {
        if (owned[id] >= min_owned) {
            ids[n_chosen] = id;
            chosen[n_chosen++] = starts[id];
        }
        if (n_chosen == 0u || (n_chosen < hlt::tpc_seeds_together && id + 1u < n_starts)) continue;
        tracklets.construct(chosen, n_chosen);
        for (uint32_t i = 0; i < n_chosen; ++i) {
            if (tracklets.n_hits(i) == 0u) continue;
            hlt::tracklet_hits hits;
            std::memset(hits.of_row, 0xFF, sizeof hits.of_row);
            hits.n = tracklets.n_hits(i);
            hits.first = hlt::tpc_rows;
            tracklets.for_hits(i, [&](uint32_t row, uint32_t number) {
                hits.of_row[row] = static_cast<uint16_t>(number);
                hits.first = hlt::min_of(hits.first, row);
                hits.last = row;
            });
            hlt::for_tracks(in, weights, hits, ids[i], p.max_shared, [&](const hlt::track_hits& found) {
                fits.add(found);
                if (fits.is_full()) write();
            });
        }
        n_chosen = 0;
    }
    write();
    if (kept_tracks != n_tracks)
        hlt::set_bits_between_blocks(&p.events.flags[whole_event], uint32_t{hlt::too_many_slice_tracks});
    p.tpc_slices.tracks[event] = kept_tracks;
    p.tpc_slices.track_clusters[event] = kept_hits;
}
