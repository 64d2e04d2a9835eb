// Forwarding of search by triplet with AVX-512 or AVX2: forward_tracks.cuh for sixteen or eight open tracks at once.
#pragma once

#include "framework/device/wide_masks.h"
#include "lhcb/velo/tracking/line_windows_cpu.h"
#include "lhcb/velo/tracking/search_by_triplet.cuh"

#if defined(__AVX2__)

namespace hlt {

/// The open tracks of one event, their hits and their seeds.
class open_tracks_cpu {
  public:
    open_tracks_cpu(const velo_search_by_triplet_parameters& p, uint32_t event, const triplet_cuts& cuts)
        : cuts_(cuts),
          first_hit_(p.velo_hits.first(event)),
          first_track_(p.velo_tracks.first(event)),
          n_hits_(p.velo_clusters.count[event]),
          max_tracks_((first_hit_ + p.velo_clusters.bound[event]) / 2u - first_track_),
          hits_{{p.velo_hits.x, first_hit_},
                {p.velo_hits.y, first_hit_},
                {p.velo_hits.z, first_hit_},
                {p.velo_hits.phi, first_hit_},
                {p.velo_hits.used, first_hit_},
                {nullptr, 0u},
                {p.velo_hits.phi_bin_offset, event * phi_bin_stride},
                {p.velo_hits.module_pair_offset, event * (n_velo_module_pairs + 1u)}},
          track_hits_(p.velo_tracks.hits + first_track_ * max_velo_track_hits),
          track_hit_count_(p.velo_tracks.hit_count + first_track_),
          seed_hits_(p.velo_seeds.hits + 4u * first_hit_),
          open_last_two_(p.scratch.open_tracks + 2u * first_hit_),
          open_state_(open_last_two_ + p.velo_clusters.bound[event] + velo_hit_padding),
          open_found_(p.scratch.open_found + first_hit_),
          bid_(p.scratch.hit_bid + first_hit_)
    {
        std::memset(bid_, 0xff, n_hits_ * sizeof *bid_);
        for (uint32_t pair = 0; pair < n_velo_module_pairs; ++pair)
            pair_z_[pair] = p.velo_geometry->module_z[2u * pair];
    }

    uint32_t n_tracks() const { return n_tracks_; }
    uint32_t n_seeds() const { return n_seeds_; }
    bool overflow() const { return overflow_; }

    /// As the common kernel. The decisions of the open tracks of a vector are computed together; hits are written one
    /// by one.
    void forward_tracks(uint32_t target)
    {
        bid_for_hits(target);
        const uint32_t shared_bid = __float_as_uint(cuts_.max_shared_scatter) & 0xffff0000u;
        const uint32_t max_skipped = min_of(cuts_.max_skipped_pairs, n_velo_module_pairs);
        const int_wide closed = int_wide{} + static_cast<int32_t>((max_skipped + 1u) * open_skipped_unit);
        uint32_t* const used = &hits_.used[0];
        uint16_t* __restrict__ const track_hits = track_hits_;
        uint8_t* __restrict__ const hit_count = track_hit_count_;
        const uint32_t n_open = n_open_;
        uint32_t n_kept = 0;
        for (uint32_t base = 0; base < n_open; base += n_wide) {
            const uint32_t n_left = n_open - base;
            const wide_mask there = wide_mask::of_first(n_left);
            const uint_wide found = load_first_wide(open_found_ + base, n_left);
            const uint_wide state = load_first_wide(open_state_ + base, n_left);
            const uint_wide last_two = load_first_wide(open_last_two_ + base, n_left);
            const uint_wide hit = found & no_hit, bid = (found & ~no_hit) | (wide_numbers + base);
            const wide_mask has_hit = there & ~wide_mask::equal(hit, uint_wide{} + no_hit);
            const wide_mask won = wide_mask::equal(has_hit.words_at(bid_, hit), bid);
            const wide_mask may_share = wide_mask::equal(state & open_shares, uint_wide{}) &
                                        wide_mask::less((int_wide)bid, int_wide{} + static_cast<int32_t>(shared_bid));
            const wide_mask takes = has_hit & (won | may_share);
            const uint32_t tracks = all_wide & ~wide_mask::equal(state & open_is_track, uint_wide{}).bits();
            alignas(64) uint32_t states[n_wide], found_hits[n_wide];
            store_wide(states, state);
            store_wide(found_hits, hit);
            const uint32_t taken = takes.bits();
            for (uint32_t bits = taken & tracks; bits != 0u; bits &= bits - 1u) {
                const uint32_t i = lowest_bit(bits), index = states[i] & open_index_mask, n = hit_count[index];
                track_hits[index * max_velo_track_hits + n] = static_cast<uint16_t>(found_hits[i]);
                hit_count[index] = static_cast<uint8_t>(n + 1u);
                used[found_hits[i]] = is_used;
            }
            uint32_t kept = taken;
            for (uint32_t bits = taken & ~tracks; bits != 0u; bits &= bits - 1u) {
                const uint32_t i = lowest_bit(bits);
                if (!make_track(states[i], found_hits[i])) kept &= ~(1u << i);
            }
            uint_wide index;
            load_wide(index, states);
            const uint_wide shares = won.choose(uint_wide{}, uint_wide{} + open_shares);
            const uint_wide extended = (index & open_index_mask) | open_is_track | shares;
            const uint_wide skipped = state + open_skipped_unit;
            const uint_wide new_state = takes.choose(extended, skipped);
            const uint_wide new_two = takes.choose(last_two >> 16 | hit << 16, last_two);
            kept |= (there & ~takes & wide_mask::less((int_wide)skipped, closed)).bits();
            const uint32_t n = static_cast<uint32_t>(__popc(static_cast<int>(kept)));
            store_first_wide(open_state_ + n_kept, packed_wide(new_state, kept), n);
            store_first_wide(open_last_two_ + n_kept, packed_wide(new_two, kept), n);
            n_kept += n;
        }
        n_open_ = n_kept;
    }

  protected:
    /// Replaces the x of a used hit: a NaN that arithmetic does not produce.
    static constexpr uint32_t is_used = 0x7fc0055du;

    /// The best hit of each line or group of lines in a vector, or no_hit; `rank`: the scatter, and in its lowest bits
    /// the place of the line.
    struct best_of_lines {
        uint_wide hit, rank;
    };
    best_of_lines best_of(uint32_t first) const
    {
        uint_wide keys, keys_behind;
        std::memcpy(&keys, windows_.best + first, sizeof keys);
        std::memcpy(&keys_behind, windows_.best + first + n_wide / 2u, sizeof keys_behind);
        static_assert(line_windows::hit_of(line_windows::no_key) == no_hit);
        return {every_second<0>(keys, keys_behind) & no_hit, every_second<1>(keys, keys_behind)};
    }

    const triplet_cuts& cuts_;
    const uint32_t first_hit_, first_track_, n_hits_, max_tracks_;
    const velo_hits hits_;
    uint16_t* const track_hits_;
    uint8_t* const track_hit_count_;
    uint16_t* const seed_hits_;
    uint32_t* const open_last_two_;  // as open_track
    uint32_t* const open_state_;
    uint32_t n_open_ = 0, n_tracks_ = 0, n_seeds_ = 0;
    bool overflow_ = false;
    float pair_z_[n_velo_module_pairs];  // of the first module of each pair
    line_windows windows_;

  private:
    /// Find the hit of pair `target` that each open track would take, and bid for it.
    void bid_for_hits(uint32_t target)
    {
        const line_target where(hits_, target, cuts_.max_forward_scatter, cuts_.max_phi_tolerance);
        const float* const x = &hits_.x[0];
        const float* const y = &hits_.y[0];
        const float* const z = &hits_.z[0];
        for (uint32_t base = 0; base < n_open_; base += line_windows::max_lines) {
            const uint32_t n = min_of(n_open_ - base, line_windows::max_lines);
            fill_lines(base, n, target, x, y, z);
            windows_.search(n, where, x, y, z);
            for (uint32_t i = 0; i < n; i += n_wide) {
                const best_of_lines best = best_of(i);
                // The scatter of a line without a hit is the greatest number.
                store_first_wide(open_found_ + base + i, (best.rank & 0xffff0000u) | best.hit, n - i);
            }
        }
        uint32_t* __restrict__ const bids = bid_;
        const uint32_t* __restrict__ const all_found = open_found_;
        const uint32_t n = n_open_, none = n_hits_;
        for (uint32_t i = 0; i < n; ++i) {
            uint32_t& bid = bids[min_of(all_found[i] & 0xffffu, none)];  // the place behind the last hit: no hit
            bid = min_of(bid, bid_of(all_found[i], i));
        }
    }

    /// The lines of n open tracks from `base` on.
    void fill_lines(uint32_t base, uint32_t n, uint32_t target, const float* __restrict__ x,
                    const float* __restrict__ y, const float* __restrict__ z)
    {
        const uint32_t* __restrict__ const last_two = open_last_two_ + base;
        line_windows& lines = windows_;
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t a = last_two[i] & 0xffffu, b = last_two[i] >> 16;
            lines.ax[i] = x[a];
            lines.ay[i] = y[a];
            lines.az[i] = z[a];
            lines.bx[i] = x[b];
            lines.by[i] = y[b];
            lines.bz[i] = z[b];
        }
        for (uint32_t i = 0; i < n; i += n_wide) {
            const uint_wide skipped = load_first_wide(open_state_ + base + i, n - i) / open_skipped_unit;
            const float_wide from_z = (float_wide)wide_mask::of_first(n - i).words_at(pair_z_, skipped + target + 1u);
            store_wide(lines.step + i, pair_z_[target] - from_z);
            store_wide(lines.group_and_place + i, (wide_numbers + i) * line_windows::group_size);
        }
        std::memset(lines.best, 0xff, n * sizeof *lines.best);
    }

    /// Make a track of an open seed and a hit. Returns false if there is no place for it.
    bool make_track(uint32_t& state, uint32_t hit)
    {
        if (n_tracks_ >= max_tracks_) {
            overflow_ = true;
            return false;
        }
        uint16_t* const seed = seed_hits_ + 4u * (state & open_index_mask);
        seed[3] = seed_extended;
        uint16_t* const track = track_hits_ + n_tracks_ * max_velo_track_hits;
        std::memcpy(track, seed, 3u * sizeof *seed);
        track[3] = static_cast<uint16_t>(hit);
        track_hit_count_[n_tracks_] = 4;
        for (uint32_t k = 0; k < 4u; ++k) hits_.used[track[k]] = is_used;
        state = n_tracks_++ | open_is_track;
        return true;
    }

    uint32_t* const open_found_;
    uint32_t* const bid_;
};

}  // namespace hlt

#endif
