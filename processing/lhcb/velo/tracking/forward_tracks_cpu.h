// Tracks and seeds that may still be extended, in search by triplet with AVX-512: forward_tracks.cuh over sixteen of
// them at once.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/velo/tracking/line_windows_cpu.h"
#include "lhcb/velo/tracking/search_by_triplet.cuh"

#if defined(__AVX512F__) && defined(__AVX512BW__)

namespace hlt {

/// The open tracks of one event, and what they are made of.
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

    /// As the common kernel does: sixteen open tracks decide at once, and those that take a hit write it one by one.
    void forward_tracks(uint32_t target)
    {
        bid_for_hits(target);
        const __m512i shared_bid =
            _mm512_set1_epi32(static_cast<int32_t>(__float_as_uint(cuts_.max_shared_scatter) & 0xffff0000u));
        const __m512i no_hits = _mm512_set1_epi32(no_hit), low_half = no_hits;
        const __m512i last_hit = _mm512_set1_epi32(static_cast<int32_t>(n_hits_));
        const __m512i shares = _mm512_set1_epi32(open_shares), is_track = _mm512_set1_epi32(open_is_track);
        uint32_t* __restrict__ const used = &hits_.used[0];
        uint16_t* __restrict__ const track_hits = track_hits_;
        uint8_t* __restrict__ const hit_count = track_hit_count_;
        const uint32_t n_open = n_open_, max_skipped = min_of(cuts_.max_skipped_pairs, n_velo_module_pairs);
        uint32_t n_kept = 0;
        for (uint32_t base = 0; base < n_open; base += 16u) {
            const __mmask16 there = first_of(n_open - base);
            const __m512i found = _mm512_maskz_loadu_epi32(there, open_found_ + base);
            const __m512i state = _mm512_maskz_loadu_epi32(there, open_state_ + base);
            const __m512i last_two = _mm512_maskz_loadu_epi32(there, open_last_two_ + base);
            const __m512i number = _mm512_add_epi32(sixteen_numbers(), _mm512_set1_epi32(static_cast<int32_t>(base)));
            const __m512i hit_or_none = _mm512_and_si512(found, low_half);
            const __m512i hit = _mm512_min_epu32(hit_or_none, last_hit);
            const __m512i bid = _mm512_or_si512(_mm512_andnot_si512(low_half, found), number);
            const __mmask16 has_hit = _mm512_mask_cmpneq_epi32_mask(there, hit_or_none, no_hits);
            const __mmask16 lost = _mm512_mask_cmpneq_epi32_mask(has_hit, _mm512_i32gather_epi32(hit, bid_, 4), bid);
            const __mmask16 may_share =
                _mm512_mask_cmplt_epu32_mask(_mm512_testn_epi32_mask(state, shares), bid, shared_bid);
            const uint32_t takes = has_hit & (~lost | may_share), tracks = _mm512_test_epi32_mask(state, is_track);
            alignas(64) uint32_t states[16], found_hits[16];
            _mm512_store_si512(states, state);
            _mm512_store_si512(found_hits, hit);
            for (uint32_t bits = takes & tracks; bits != 0u; bits &= bits - 1u) {
                const uint32_t i = lowest_bit(bits), index = states[i] & open_index_mask, n = hit_count[index];
                track_hits[index * max_velo_track_hits + n] = static_cast<uint16_t>(found_hits[i]);
                hit_count[index] = static_cast<uint8_t>(n + 1u);
                used[found_hits[i]] = is_used;
            }
            uint32_t kept = takes;
            for (uint32_t bits = takes & ~tracks; bits != 0u; bits &= bits - 1u) {
                const uint32_t i = lowest_bit(bits);
                if (!make_track(states[i], found_hits[i])) kept &= ~(1u << i);
            }
            const __mmask16 taken = static_cast<__mmask16>(takes);
            const __m512i all_shares = _mm512_maskz_mov_epi32(lost, shares);
            const __m512i indices = _mm512_and_si512(_mm512_load_si512(states), low_half);
            const __m512i extended = _mm512_or_si512(indices, _mm512_or_si512(is_track, all_shares));
            const __m512i skipped = _mm512_add_epi32(state, _mm512_set1_epi32(open_skipped_unit));
            const __m512i new_state = _mm512_mask_mov_epi32(skipped, taken, extended);
            const __m512i new_two =
                _mm512_mask_or_epi32(last_two, taken, _mm512_srli_epi32(last_two, 16), _mm512_slli_epi32(hit, 16));
            kept |= _mm512_mask_cmple_epu32_mask(
                there & static_cast<__mmask16>(~takes), skipped,
                _mm512_set1_epi32(static_cast<int32_t>((max_skipped + 1u) * open_skipped_unit - 1u)));
            const __mmask16 kept_lanes = static_cast<__mmask16>(kept);
            const uint32_t n = static_cast<uint32_t>(__builtin_popcount(kept));
            _mm512_mask_storeu_epi32(open_state_ + n_kept, first_of(n),
                                     _mm512_maskz_compress_epi32(kept_lanes, new_state));
            _mm512_mask_storeu_epi32(open_last_two_ + n_kept, first_of(n),
                                     _mm512_maskz_compress_epi32(kept_lanes, new_two));
            n_kept += n;
        }
        n_open_ = n_kept;
    }

  protected:
    /// In place of the x of a hit that is used: not a number, and none that arithmetic makes.
    static constexpr uint32_t is_used = 0x7fc0055du;

    static __mmask16 first_of(uint32_t n) { return static_cast<__mmask16>(first_bits(n)); }
    static __m512i sixteen_numbers() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }

    /// Of sixteen lines or groups of them the best hits, or no_hit, and above the place of the line the scatter.
    struct best_of_lines {
        __m512i hit, rank;
    };
    best_of_lines best_of(uint32_t first) const
    {
        const __m512i low = _mm512_load_si512(windows_.best + first);
        const __m512i high = _mm512_load_si512(windows_.best + first + 8u);
        const __m512i even = _mm512_slli_epi32(sixteen_numbers(), 1);
        const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
        const __m512i hit = _mm512_and_si512(_mm512_permutex2var_epi32(low, even, high), _mm512_set1_epi32(no_hit));
        static_assert(line_windows::hit_of(line_windows::no_key) == no_hit);
        return {hit, _mm512_permutex2var_epi32(low, odd, high)};
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
    float pair_z_[32] = {};  // of the first module of each pair
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
            for (uint32_t i = 0; i < n; i += 16u) {
                const best_of_lines best = best_of(i);
                // Without a hit the scatter is the greatest.
                const __m512i found = _mm512_mask_mov_epi16(best.rank, 0x55555555u, best.hit);
                _mm512_mask_storeu_epi32(open_found_ + base + i, first_of(n - i), found);
            }
        }
        uint32_t* __restrict__ const bids = bid_;
        const uint32_t* __restrict__ const all_found = open_found_;
        const uint32_t n = n_open_, none = n_hits_;
        for (uint32_t i = 0; i < n; ++i) {
            uint32_t& bid = bids[min_of(all_found[i] & 0xffffu, none)];  // behind the last hit bids for none
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
        const __m512i first_pair = _mm512_set1_epi32(static_cast<int32_t>(target + 1u));
        const __m512 target_z = _mm512_set1_ps(pair_z_[target]);
        const __m512 low_z = _mm512_loadu_ps(pair_z_), high_z = _mm512_loadu_ps(pair_z_ + 16);
        for (uint32_t i = 0; i < n; i += 16u) {
            const __m512i state = _mm512_maskz_loadu_epi32(first_of(n - i), open_state_ + base + i);
            const __m512i from =
                _mm512_add_epi32(first_pair, _mm512_srli_epi32(state, __builtin_ctz(open_skipped_unit)));
            _mm512_store_ps(lines.step + i, target_z - _mm512_permutex2var_ps(low_z, from, high_z));
            const __m512i line = _mm512_add_epi32(sixteen_numbers(), _mm512_set1_epi32(static_cast<int32_t>(i)));
            _mm512_store_si512(lines.group_and_place + i, _mm512_slli_epi32(line, 3));
        }
        static_assert(line_windows::group_size == 1u << 3);
        std::memset(lines.best, 0xff, n * sizeof *lines.best);
    }

    /// An open seed and a hit become a track. Returns false if there is no place for it.
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
