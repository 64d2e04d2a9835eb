// The tracklets of several seeds of a slice (tracklet.cuh), row by row: in each row, vectors of tracks that are there
// take the step together. Tracks that end leave their place to the last one, so vectors stay full, and all read the
// same row.
#pragma once

#include "alice/tpc/tracks/tracklet.cuh"
#include "alice/tpc/tracks/wide_search.h"

namespace hlt {

/// Seeds that are followed together. Their states have 25 kB: more do not fit in a first-level cache.
constexpr uint32_t tpc_seeds_together = 128;
constexpr uint32_t tpc_row_words = (tpc_rows + 31u) / 32u;

/// Tracks that move together, one in each lane.
struct tracks_in_lanes {
    wide_state state;
    uint_wide seed;
    uint_wide missed, fitted;
    uint_wide lowest, seed_end;     // rows
    uint_wide highest;              // row
    uint_wide rows[tpc_row_words];  // a bit for each row with a cluster
};
constexpr uint32_t words_of_track = sizeof(tracks_in_lanes) / sizeof(uint_wide);

/// Tracks of a list of seeds, n_wide in each element.
class track_list {
  public:
    uint32_t size() const { return n_; }
    uint32_t groups() const { return (n_ + n_wide - 1u) / n_wide; }
    tracks_in_lanes& group(uint32_t i) { return groups_[i]; }
    int_wide in_use(uint32_t group) const { return (int_wide)wide_numbers < static_cast<int32_t>(n_ - group * n_wide); }
    void clear() { n_ = 0; }
    /// Add a track of another list.
    void take(const track_list& from, uint32_t i) { copy(from, i, n_++); }
    /// The last track gets the place of this one.
    void drop(uint32_t i)
    {
        --n_;
        if (i != n_) copy(*this, n_, i);
    }
    /// Places for n tracks, whose words the caller writes.
    void resize(uint32_t n) { n_ = n; }

  private:
    void copy(const track_list& from, uint32_t i, uint32_t to)
    {
        const char* const read = reinterpret_cast<const char*>(&from.groups_[i / n_wide]) + i % n_wide * 4u;
        char* const write = reinterpret_cast<char*>(&groups_[to / n_wide]) + to % n_wide * 4u;
        for (uint32_t k = 0; k < words_of_track; ++k)
            std::memcpy(write + k * sizeof(uint_wide), read + k * sizeof(uint_wide), 4);
    }

    tracks_in_lanes groups_[tpc_seeds_together / n_wide];
    uint32_t n_ = 0;
};

/// Numbers in a list by row.
class seeds_by_row {
  public:
    void clear()
    {
        for (uint16_t& first : first_) first = none;
    }
    void add(uint32_t row, uint32_t i)
    {
        next_[i] = first_[row];
        first_[row] = static_cast<uint16_t>(i);
    }
    template <typename Take>
    void take(uint32_t row, const Take& take_seed) const
    {
        for (uint32_t i = first_[row]; i != none; i = next_[i]) take_seed(i);
    }

  private:
    static constexpr uint16_t none = 0xFFFF;
    uint16_t first_[tpc_rows], next_[tpc_seeds_together];
};

/// Constructs tracklets; its memory is that of a thread.
class wide_tracklets {
  public:
    explicit wide_tracklets(const tracklet_input& input) : in(input) {}

    /// The tracklets of up to tpc_seeds_together start hits; true if the search was too crowded.
    bool construct(const uint32_t* starts, uint32_t n)
    {
        crowded_ = false;
        for (uint32_t i = 0; i < n; ++i) n_hits_[i] = 0;
        fit_seeds(starts, n);
        follow_upwards();
        fit_from_last();
        follow_downwards();
        return crowded_;
    }

    /// Number of clusters of the tracklet of a start hit, 0 if there is no tracklet.
    uint32_t n_hits(uint32_t seed) const { return n_hits_[seed]; }
    /// Calls `take(row, number)` for each cluster of a tracklet, rows upwards.
    template <typename Take>
    void for_hits(uint32_t seed, const Take& take) const
    {
        for (uint32_t word = 0; word < tpc_row_words; ++word)
            for (uint32_t bits = rows_[seed][word]; bits != 0u; bits &= bits - 1u) {
                const uint32_t row = 32u * word + lowest_bit(bits);
                take(row, number_[row][seed]);
            }
    }

  private:
    tpc_point_of<float_wide> points_at(const uint_wide& row, const uint_wide& seed) const
    {
        const uint_wide number = pairs_of(&number_[0][0], row * tpc_seeds_together + seed) & 0xFFFFu;
        const uint_wide first = words_of<4>(&in.rows[0].first, row * (sizeof(tpc_row) / 4u));
        const uint_wide place = words_of<4>(in.places, first + number);
        return {floats_of(in.row_x, row), y_of(place), z_of(place), floats_of(in.pads, row)};
    }

    /// The fit of the seeds; those that are tracks go to `waiting_`, with the row where the search begins.
    void fit_seeds(const uint32_t* starts, uint32_t n)
    {
        uint16_t of_length[tpc_rows] = {};
        for (uint32_t i = 0; i < n; ++i) {
            uint32_t row = starts[i] >> 16, link = starts[i] & 0xFFFFu, length = 0;
            for (; link != tpc_no_cluster; row += 2u) {
                number_[row][i] = static_cast<uint16_t>(link);
                ++length;
                link = in.next[in.rows[row].first + link];
            }
            start_[i] = starts[i] >> 16;
            length_[i] = length;
            ++of_length[length];
        }
        // Vectors take seeds of about the same length.
        uint32_t running = 0;
        for (uint16_t& count : of_length) {
            const uint32_t of_this = count;
            count = static_cast<uint16_t>(running);
            running += of_this;
        }
        for (uint32_t i = 0; i < n; ++i) order_[of_length[length_[i]]++] = i;
        for (uint32_t i = n; i % n_wide != 0u; ++i) order_[i] = order_[n - 1u];

        waiting_.clear();
        by_row_.clear();
        for (uint32_t i = 0; i < n; i += n_wide) {
            tracks_in_lanes group;
            load_wide(group.seed, order_ + i);
            const uint_wide start = words_of<4>(start_, group.seed), length = words_of<4>(length_, group.seed);
            const uint_wide n_circle = min_lanes(length, 11u);
            int_wide active = start_state(in.filter, points_at(start, group.seed),
                                          points_at(start + 2u * ((n_circle - 1u) / 2u), group.seed),
                                          points_at(start + 2u * (n_circle - 1u), group.seed), true, group.state);
            active &= wide_numbers < n - i;
            const int_wide starts_well = active;
            uint_wide n_fitted = uint_wide{} + 1u;
            for (uint32_t k = 1;; ++k) {
                active &= length > k;
                if (bits_of(active) == 0u) break;
                const uint_wide row = active ? start + 2u * k : start;
                const tpc_point_of<float_wide> point = points_at(row, group.seed);
                active = propagate_where(active, in.filter, group.state, point.x);
                update_where(active, group.state, errors_at(in.filter, group.state, point.z, point.pad), point.y,
                             point.z);
                n_fitted -= (uint_wide)active;
            }
            const float_wide freedom = wide_float(2u * n_fitted - 5u);
            const int_wide good = starts_well & (n_fitted >= 3u) & ~(group.state.chi2 > in.max_seed_chi2 * freedom);
            group.missed = group.fitted = uint_wide{};
            group.lowest = start;
            group.seed_end = group.highest = start + 2u * (n_fitted - 1u);
            keep(group, good, [&](uint32_t l, uint32_t place) {
                uint32_t of_seed[tpc_row_words] = {};
                for (uint32_t row = start[l]; row <= group.highest[l]; row += 2u) of_seed[row / 32u] |= 1u << row % 32u;
                set_rows(place, of_seed);
                by_row_.add(group.highest[l], place);
            });
        }
    }

    void follow_upwards()
    {
        done_.clear();
        moving_.clear();
        for (uint32_t row = 0; row < tpc_rows; ++row) {
            step_upwards(row);
            by_row_.take(row, [&](uint32_t i) { moving_.take(waiting_, i); });
        }
        while (moving_.size() != 0u) finish_upwards(moving_.size() - 1u);
    }

    void finish_upwards(uint32_t i)
    {
        done_.take(moving_, i);
        moving_.drop(i);
    }

    void step_upwards(uint32_t row)
    {
        const tpc_row& of_row = in.rows[row];
        const float x = in.row_x[row], pad = in.pads[row];
        const uint32_t bit = 1u << row % 32u;
        uint32_t n_ended = 0;
        // One loop for each part of a step: within a group, each part waits for the one before.
        for (uint32_t g = 0; g < moving_.groups(); ++g)
            moved_[g] = propagate_where(moving_.in_use(g), in.filter, moving_.group(g).state, x);
        find_clusters_around(of_row, moved_);
        for (uint32_t g = 0; g < moving_.groups(); ++g) {
            tracks_in_lanes& group = moving_.group(g);
            const int_wide in_use = moving_.in_use(g), moved = moved_[g];
            const wide_nearest near =
                nearest_of(ranges_[g], in.filter, group.state, of_row, in.places, pad, in.max_chi2);
            add(group, near.found, near.place, pad);
            store_numbers(row, group.seed, near.number, near.found);
            group.rows[row / 32u] |= (uint_wide)near.found & bit;
            group.highest = near.found ? uint_wide{} + row : group.highest;
            group.missed = near.found ? uint_wide{} : group.missed + 1u;
            const int_wide ended = in_use & (~moved | (group.missed > in.max_missed_rows));
            for (uint32_t bits = bits_of(ended); bits != 0u; bits &= bits - 1u)
                ended_[n_ended++] = static_cast<uint16_t>(g * n_wide + lowest_bit(bits));
        }
        while (n_ended != 0u) finish_upwards(ended_[--n_ended]);
    }

    /// The new fits at the uppermost clusters; the tracks go to `waiting_`.
    void fit_from_last()
    {
        waiting_.clear();
        by_row_.clear();
        for (uint32_t g = 0; g < done_.groups(); ++g) {
            tracks_in_lanes group = done_.group(g);
            const int_wide in_use = done_.in_use(g);
            uint_wide at[2]{};
            for (uint32_t l = 0; l < n_wide && g * n_wide + l < done_.size(); ++l) {
                uint32_t n = 0, rows[tpc_row_words];
                for (uint32_t word = 0; word < tpc_row_words; ++word) {
                    rows[word] = group.rows[word][l];
                    n += static_cast<uint32_t>(__popc(static_cast<int>(rows[word])));
                }
                const uint32_t step = min_of((n - 1u) / 2u, 8u);
                uint32_t seen = 0, found = 0;
                for (uint32_t word = tpc_row_words; word-- > 0u && found < 2u;)
                    for (uint32_t bits = rows[word]; bits != 0u && found < 2u;) {
                        const uint32_t highest = 31u - static_cast<uint32_t>(__clz(static_cast<int>(bits)));
                        bits ^= 1u << highest;
                        if (seen++ == step * (found + 1u)) at[found++][l] = 32u * word + highest;
                    }
            }
            // Other lanes must read what exists.
            group.seed &= (uint_wide)in_use;
            group.highest &= (uint_wide)in_use;
            const int_wide good =
                in_use & start_state(in.filter, points_or_any(in_use, at[1], group.seed),
                                     points_or_any(in_use, at[0], group.seed),
                                     points_or_any(in_use, group.highest, group.seed), false, group.state);
            group.missed = uint_wide{};
            group.fitted = uint_wide{} + 1u;
            keep(group, good, [&](uint32_t l, uint32_t place) { by_row_.add(group.highest[l], place); });
        }
    }

    void follow_downwards()
    {
        moving_.clear();
        for (uint32_t row = tpc_rows; row-- > 0u;) {
            step_downwards(row);
            by_row_.take(row, [&](uint32_t i) { moving_.take(waiting_, i); });
        }
        while (moving_.size() != 0u) finish_downwards(moving_.size() - 1u);
    }

    void finish_downwards(uint32_t i)
    {
        const tracks_in_lanes& group = moving_.group(i / n_wide);
        const uint32_t l = i % n_wide, seed = group.seed[l];
        uint32_t n = 0;
        for (uint32_t word = 0; word < tpc_row_words; ++word) {
            rows_[seed][word] = group.rows[word][l];
            n += static_cast<uint32_t>(__popc(static_cast<int>(rows_[seed][word])));
        }
        n_hits_[seed] = n >= in.min_clusters ? n : 0u;
        moving_.drop(i);
    }

    void step_downwards(uint32_t row)
    {
        const tpc_row& of_row = in.rows[row];
        const float x = in.row_x[row], pad = in.pads[row];
        const uint32_t bit = 1u << row % 32u;
        uint32_t n_ended = 0;
        for (uint32_t g = 0; g < moving_.groups(); ++g) {
            const tracks_in_lanes& group = moving_.group(g);
            const int_wide has = (group.rows[row / 32u] & bit) != 0u;
            // Above a seed, rows without a cluster were searched on the way up.
            wanted_[g] = moving_.in_use(g) & (has | (group.seed_end >= row));
            moved_[g] = propagate_where(wanted_[g], in.filter, moving_.group(g).state, x);
            searches_[g] = moved_[g] & ~has;
        }
        find_clusters_around(of_row, searches_);
        for (uint32_t g = 0; g < moving_.groups(); ++g) {
            tracks_in_lanes& group = moving_.group(g);
            const int_wide in_use = moving_.in_use(g), wanted = wanted_[g], moved = moved_[g];
            const int_wide known = moved & ~searches_[g];
            uint_wide& rows = group.rows[row / 32u];
            const wide_nearest near =
                nearest_of(ranges_[g], in.filter, group.state, of_row, in.places, pad, in.max_chi2);
            uint_wide place = near.place;
            if (bits_of(known) != 0u) {
                const uint_wide at = pairs_of(number_[row], group.seed & (uint_wide)known) & 0xFFFFu & (uint_wide)known;
                place = known ? words_of<4>(in.places + of_row.first, at) : place;
            }
            const float_wide y = y_of(place), z = z_of(place);
            const tpc_errors_of<float_wide> errors = errors_at(in.filter, group.state, z, pad);
            const int_wide is_far =
                known & (group.fitted >= 3u) & (distance2(group.state, errors, y, z) > in.max_outlier_chi2);
            const int_wide taken = near.found | (known & ~is_far);
            update_where(taken, group.state, errors, y, z);
            store_numbers(row, group.seed, near.number, near.found);
            rows =
                (rows & ~(is_far ? uint_wide{} + bit : uint_wide{})) | (near.found ? uint_wide{} + bit : uint_wide{});
            group.fitted -= (uint_wide)taken;
            const int_wide misses = moved & ~taken & (group.lowest > row);
            group.missed = taken ? uint_wide{} : group.missed - (uint_wide)misses;
            const int_wide turned = wanted & ~moved, ended = turned | (in_use & (group.missed > in.max_missed_rows));
            if (bits_of(turned) != 0u) forget_below(group, turned & (group.lowest <= row), row);
            for (uint32_t bits = bits_of(ended); bits != 0u; bits &= bits - 1u)
                ended_[n_ended++] = static_cast<uint16_t>(g * n_wide + lowest_bit(bits));
        }
        while (n_ended != 0u) finish_downwards(ended_[--n_ended]);
    }

    /// Ranges of clusters for the tracks that search in a row.
    void find_clusters_around(const tpc_row& of_row, const int_wide (&tracks)[tpc_seeds_together / n_wide])
    {
        for (uint32_t g = 0; g < moving_.groups(); ++g) {
            if (of_row.n_clusters == 0u || bits_of(tracks[g]) == 0u)
                ranges_[g] = wide_range{};
            else
                ranges_[g] = clusters_around(tracks[g], moving_.group(g).state, of_row, in.begins, crowded_);
        }
    }

    /// The rows up to `row` have no clusters.
    static void forget_below(tracks_in_lanes& group, const int_wide& tracks, uint32_t row)
    {
        for (uint32_t word = 0; word <= row / 32u; ++word) {
            const uint32_t kept = word < row / 32u || row % 32u == 31u ? 0u : ~0u << (row % 32u + 1u);
            group.rows[word] &= tracks ? uint_wide{} + kept : uint_wide{} + ~0u;
        }
    }

    void add(tracks_in_lanes& group, const int_wide& tracks, const uint_wide& place, float pad) const
    {
        const float_wide y = y_of(place), z = z_of(place);
        update_where(tracks, group.state, errors_at(in.filter, group.state, z, pad), y, z);
    }

    void store_numbers(uint32_t row, const uint_wide& seed, const uint_wide& number, const int_wide& found)
    {
        uint32_t seeds[n_wide], numbers[n_wide];
        store_wide(seeds, seed);
        store_wide(numbers, number);
        for (uint32_t bits = bits_of(found); bits != 0u; bits &= bits - 1u) {
            const uint32_t l = lowest_bit(bits);
            number_[row][seeds[l]] = static_cast<uint16_t>(numbers[l]);
        }
    }

    /// Points of the lanes in use.
    tpc_point_of<float_wide> points_or_any(const int_wide& in_use, const uint_wide& row, const uint_wide& seed) const
    {
        const uint_wide number =
            pairs_of(&number_[0][0], row * tpc_seeds_together + seed) & 0xFFFFu & (uint_wide)in_use;
        const uint_wide first = words_of<4>(&in.rows[0].first, row * (sizeof(tpc_row) / 4u));
        const uint_wide place = words_of<4>(in.places, (first + number) & (uint_wide)in_use);
        return {floats_of(in.row_x, row), y_of(place), z_of(place), floats_of(in.pads, row)};
    }

    /// Put the tracks of some lanes in `waiting_`; calls `kept(lane, place)` for each.
    template <typename Kept>
    void keep(const tracks_in_lanes& group, const int_wide& good, const Kept& kept)
    {
        track_list& one = single_;
        one.group(0) = group;
        for (uint32_t bits = bits_of(good); bits != 0u; bits &= bits - 1u) {
            const uint32_t place = waiting_.size(), l = lowest_bit(bits);
            waiting_.take(one, l);
            kept(l, place);
        }
    }

    void set_rows(uint32_t place, const uint32_t (&of_seed)[tpc_row_words])
    {
        tracks_in_lanes& group = waiting_.group(place / n_wide);
        for (uint32_t word = 0; word < tpc_row_words; ++word) group.rows[word][place % n_wide] = of_seed[word];
    }

    const tracklet_input& in;
    bool crowded_ = false;
    track_list waiting_, moving_, done_, single_;
    seeds_by_row by_row_;
    int_wide wanted_[tpc_seeds_together / n_wide], moved_[tpc_seeds_together / n_wide];
    int_wide searches_[tpc_seeds_together / n_wide];
    wide_range ranges_[tpc_seeds_together / n_wide];
    uint16_t ended_[tpc_seeds_together];
    uint32_t start_[tpc_seeds_together], length_[tpc_seeds_together], order_[tpc_seeds_together];
    uint32_t rows_[tpc_seeds_together][tpc_row_words], n_hits_[tpc_seeds_together];
    uint16_t number_[tpc_rows + 1u][tpc_seeds_together];  // one row more: two numbers are read at once
};

}  // namespace hlt
