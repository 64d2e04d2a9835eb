// Search by triplet with AVX-512: the steps of the common kernel, which has the rules, over lists of lines that are
// followed together (line_windows_cpu.h). Without AVX-512 the common kernel is run.
//
// Middle hits write their lines, up to max_partners each, by packed stores. The closest third hit of a line, and of the
// lines of a middle hit the best, is the least of keys of 64 bits: the scatter, the partner and the hit. While it runs,
// velo_hits.used has the x of the hits that are unused: no line passes near the others.
#pragma once

#include "lhcb/velo/tracking/line_windows_cpu.h"
#include "lhcb/velo/tracking/search_by_triplet.cuh"

#if defined(__AVX512F__) && defined(__AVX512BW__)

namespace hlt {

/// What search by triplet of one event works on.
class triplet_search_cpu {
  public:
    triplet_search_cpu(const velo_search_by_triplet_parameters& p, uint32_t event, const triplet_cuts& cuts)
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
          module_z_(p.velo_geometry->module_z),
          track_hits_(p.velo_tracks.hits + first_track_ * max_velo_track_hits),
          track_hit_count_(p.velo_tracks.hit_count + first_track_),
          seed_hits_(p.velo_seeds.hits + 4u * first_hit_),
          open_(reinterpret_cast<open_track*>(p.scratch.open_tracks) + first_hit_),
          open_found_(p.scratch.open_found + first_hit_),
          bid_(p.scratch.hit_bid + first_hit_),
          middle_(p.scratch.unused_hits + first_hit_),
          n_places_(p.velo_clusters.bound[event] + velo_hit_padding),
          downstream_(p.scratch.points + 4u * first_hit_)
    {
    }

    void run()
    {
        std::memcpy(&hits_.used[0], &hits_.x[0], n_hits_ * sizeof(uint32_t));
        std::memset(bid_, 0xff, n_hits_ * sizeof *bid_);
        for (uint32_t pair = n_velo_module_pairs - 2u; pair >= 1u; --pair) {
            forward_tracks(pair - 1u);
            const uint32_t n_middle = list_middle(pair);
            if (n_middle == 0u) continue;
            const uint32_t n_downstream = gather_downstream(pair + 1u);
            if (n_downstream == 0u) continue;
            fill_downstream(n_downstream);
            seed_tracks(pair, n_downstream, n_middle);
        }
        for (uint32_t i = 0; i < n_hits_; ++i) hits_.used[i] = hits_.used[i] == is_used ? 1u : 0u;
    }

    uint32_t n_tracks() const { return n_tracks_; }
    uint32_t n_seeds() const { return n_seeds_; }
    bool overflow() const { return overflow_; }

  private:
    /// In place of the x of a hit that is used: not a number, and none that arithmetic makes.
    static constexpr uint32_t is_used = 0x7fc0055du;
    static constexpr uint32_t half = max_partners / 2u;
    static constexpr uint32_t tile = line_windows::max_lines / max_partners;  // middle hits

    float* downstream_x() const { return downstream_; }
    float* downstream_y() const { return downstream_ + n_places_; }
    float* downstream_z() const { return downstream_ + 2u * n_places_; }
    float* downstream_phi_and_hit() const { return downstream_ + 3u * n_places_; }  // phi, above it the hit

    /// Of the hits from `first` on those that are unused; bit k stands for first + k. Hits from `end` on are not.
    uint32_t unused_of(uint32_t first, uint32_t end) const
    {
        int8x32 used;
        load8(used, &hits_.used[first]);
        return bits_of((used != static_cast<int32_t>(is_used)) & (first_lanes8 < static_cast<int32_t>(end - first)));
    }

    /// List the unused hits of the pair. Returns how many they are.
    uint32_t list_middle(uint32_t pair)
    {
        const uint32_t begin = hits_.module_pair_offset[pair], end = hits_.module_pair_offset[pair + 1u];
        uint32_t n = 0;
        for (uint32_t hit = begin; hit < end; hit += 8u) {
            const uint32_t unused = unused_of(hit, end);
            const uint8x16 numbers = uint8x16{0, 1, 2, 3, 4, 5, 6, 7} + static_cast<uint16_t>(hit);
            store_packed(middle_ + n, numbers, unused);
            n += static_cast<uint32_t>(__popc(unused));
        }
        return n;
    }

    /// Put the unused hits of the pair where partners are looked for. Returns how many they are.
    uint32_t gather_downstream(uint32_t pair)
    {
        const uint32_t begin = hits_.module_pair_offset[pair], end = hits_.module_pair_offset[pair + 1u];
        uint32_t n = 0;
        for (uint32_t hit = begin; hit < end; hit += 8u) {
            const uint32_t unused = unused_of(hit, end);
            float8 x, y, z;
            uint8x16 phi;
            load8(x, &hits_.x[hit]);
            load8(y, &hits_.y[hit]);
            load8(z, &hits_.z[hit]);
            load8(phi, &hits_.phi[hit]);
            const uint8x32 phi_and_hit =
                __builtin_convertvector(phi, uint8x32) | (uint8x32{0, 1, 2, 3, 4, 5, 6, 7} + hit) << 16;
            keep(downstream_x() + half + n, x, unused, n);
            keep(downstream_y() + half + n, y, unused, n);
            keep(downstream_z() + half + n, z, unused, n);
            keep(downstream_phi_and_hit() + half + n, phi_and_hit, unused, n);
            n += static_cast<uint32_t>(__popc(unused));
        }
        return n;
    }

    /// Store the lanes whose bits are set, n being how many are before.
    template <typename Vector>
    void keep(float* to, const Vector& lanes, uint32_t bits, uint32_t n) const
    {
        if (half + n + 8u <= n_places_) {
            store_packed(to, lanes, bits);
        } else {  // nearly all hits of the event: none behind the last place
            float packed[8];
            store_packed(packed, lanes, bits);
            std::memcpy(to, packed, static_cast<uint32_t>(__popc(bits)) * sizeof *to);
        }
    }

    /// As the common kernel fills the places before and behind the hits downstream.
    void fill_downstream(uint32_t n)
    {
        if (n > max_partners) {
            for (float* column : {downstream_x(), downstream_y(), downstream_z(), downstream_phi_and_hit()}) {
                std::memcpy(column, column + n, half * sizeof *column);
                std::memcpy(column + half + n, column + half, half * sizeof *column);
            }
        } else {
            for (uint32_t place = first_of_few(n); place < first_of_few(n) + max_partners; ++place)
                if (place < half || place >= half + n) downstream_x()[place] = not_a_number();
        }
    }

    /// Of n middle hits the first of the hits downstream whose phi is not below theirs. All hits downstream before
    /// `nearest` are below; what it is then serves for the middle hits that follow.
    void find_nearest(const uint16_t* middle, uint32_t n, uint32_t& nearest, uint32_t n_downstream)
    {
        const float* const at = downstream_phi_and_hit() + half;
        for (uint32_t base = 0; base < n; base += 8u) {
            const uint32_t last = min_of(n - base, 8u) - 1u;
            int8x32 phi;
            for (uint32_t k = 0; k < 8u; ++k) phi[k] = hits_.phi[middle[base + min_of(k, last)]];
            const int32_t last_phi = phi[7];
            int8x32 place = int8x32{} + static_cast<int32_t>(nearest);
            for (; nearest < n_downstream; ++nearest) {
                const int32_t downstream_phi = static_cast<int16_t>(load_u32_of(at + nearest));
                if (downstream_phi >= last_phi) break;
                place -= downstream_phi < phi;
            }
            std::memcpy(first_partner_ + base, &place, sizeof place);
        }
    }

    /// Write the lines through middle hit m of the tile and its partners, max_partners from place `first` on, as lines
    /// [n, ...). Returns where they end.
    uint32_t add_lines(uint32_t n, uint32_t m, uint32_t hit, uint32_t first)
    {
        const __m256 x = _mm256_loadu_ps(downstream_x() + first), middle_x = _mm256_set1_ps(hits_.x[hit]);
        const __m256 y = _mm256_loadu_ps(downstream_y() + first), middle_y = _mm256_set1_ps(hits_.y[hit]);
        const __m256 z = _mm256_loadu_ps(downstream_z() + first), middle_z = _mm256_set1_ps(hits_.z[hit]);
        const __m256i phi = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(downstream_phi_and_hit() + first));
        const __m256i shifted = _mm256_slli_epi32(_mm256_sub_epi32(phi, _mm256_set1_epi32(hits_.phi[hit])), 16);
        const __m256i distance = _mm256_abs_epi32(_mm256_srai_epi32(shifted, 16));
        const __m256 dx = x - middle_x, dy = y - middle_y, dz = z - middle_z;
        const __m256 d2 = dx * dx + dy * dy, dz2 = dz * dz;
        const __mmask8 near = _mm256_cmple_epi32_mask(distance, _mm256_set1_epi32(cuts_.displaced_phi_tolerance));
        const __mmask8 displaced = _mm256_cmpgt_epi32_mask(distance, _mm256_set1_epi32(cuts_.phi_tolerance));
        const __m256 max2 =
            _mm256_mask_mov_ps(_mm256_set1_ps(cuts_.max_slope2), displaced, _mm256_set1_ps(cuts_.max_displaced_slope2));
        const __mmask8 chosen = _mm256_mask_cmp_ps_mask(near, d2, max2 * dz2, _CMP_LE_OQ);
        const __m256i line = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7) +
                             _mm256_set1_epi32(static_cast<int32_t>(m * line_windows::group_size));
        _mm256_storeu_ps(windows_.ax + n, _mm256_maskz_compress_ps(chosen, x));
        _mm256_storeu_ps(windows_.ay + n, _mm256_maskz_compress_ps(chosen, y));
        _mm256_storeu_ps(windows_.az + n, _mm256_maskz_compress_ps(chosen, z));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(windows_.group_and_place + n),
                            _mm256_maskz_compress_epi32(chosen, line));
        _mm256_storeu_ps(windows_.bx + n, middle_x);
        _mm256_storeu_ps(windows_.by + n, middle_y);
        _mm256_storeu_ps(windows_.bz + n, middle_z);
        return n + static_cast<uint32_t>(__popc(chosen));
    }

    /// Make triplets of unused hits with the middle one in `pair`.
    void seed_tracks(uint32_t pair, uint32_t n_downstream, uint32_t n_middle)
    {
        const line_target where(hits_, pair - 1u, cuts_.max_seed_scatter, cuts_.max_phi_tolerance);
        const float step = module_z_[2u * pair - 2u] - module_z_[2u * pair];
        const bool few = n_downstream <= max_partners;
        uint32_t nearest = 0;  // first hit downstream whose phi is not below that of the middle hit; only rises
        for (uint32_t base = 0; base < n_middle; base += tile) {
            const uint32_t n = min_of(n_middle - base, tile);
            if (few)
                for (uint32_t m = 0; m < n; ++m) first_partner_[m] = first_of_few(n_downstream);
            else
                find_nearest(middle_ + base, n, nearest, n_downstream);
            uint32_t n_lines = 0;
            for (uint32_t m = 0; m < n; ++m) {
                windows_.best[m] = line_windows::no_key;
                n_lines = add_lines(n_lines, m, middle_[base + m], first_partner_[m]);
            }
            for (uint32_t i = 0; i < n_lines; ++i) windows_.step[i] = step;
            const float* const unused_x = reinterpret_cast<const float*>(&hits_.used[0]);
            windows_.search(n_lines, where, unused_x, &hits_.y[0], &hits_.z[0]);
            make_seeds(base, n);
        }
    }

    /// The best line of each of n middle hits becomes a seed. Behind the last one place is written that does not count.
    void make_seeds(uint32_t base, uint32_t n)
    {
        for (uint32_t m = 0; m < n; ++m) {
            const uint64_t best = windows_.best[m];
            const uint32_t hit = middle_[base + m], third = line_windows::hit_of(best);
            const uint32_t partner = static_cast<uint32_t>(best >> 32) % max_partners;
            const uint32_t first = load_u32_of(downstream_phi_and_hit() + first_partner_[m] + partner) >> 16;
            const uint16_t seed[4] = {static_cast<uint16_t>(first), static_cast<uint16_t>(hit),
                                      static_cast<uint16_t>(third), seed_left};
            std::memcpy(seed_hits_ + 4u * n_seeds_, seed, sizeof seed);
            open_[n_open_] = {hit | third << 16, n_seeds_};
            const uint32_t found = line_windows::has_hit(best) ? 1u : 0u;
            n_seeds_ += found;
            n_open_ += found;
        }
    }

    static uint32_t load_u32_of(const float* from)
    {
        uint32_t word;
        std::memcpy(&word, from, sizeof word);
        return word;
    }

    /// Find the hit of pair `target` that each open track would take, and bid for it.
    void bid_for_hits(uint32_t target)
    {
        const line_target where(hits_, target, cuts_.max_forward_scatter, cuts_.max_phi_tolerance);
        for (uint32_t base = 0; base < n_open_; base += line_windows::max_lines) {
            const uint32_t n = min_of(n_open_ - base, line_windows::max_lines);
            for (uint32_t i = 0; i < n; ++i) {
                const open_track track = open_[base + i];
                const uint32_t a = track.last_two & 0xffffu, b = track.last_two >> 16;
                windows_.ax[i] = hits_.x[a];
                windows_.ay[i] = hits_.y[a];
                windows_.az[i] = hits_.z[a];
                windows_.bx[i] = hits_.x[b];
                windows_.by[i] = hits_.y[b];
                windows_.bz[i] = hits_.z[b];
                const uint32_t from = target + 1u + track.state / open_skipped_unit;
                windows_.step[i] = module_z_[2u * target] - module_z_[2u * from];
                windows_.group_and_place[i] = i * line_windows::group_size;
                windows_.best[i] = line_windows::no_key;
            }
            windows_.search(n, where, &hits_.x[0], &hits_.y[0], &hits_.z[0]);
            for (uint32_t i = 0; i < n; ++i) {
                const uint64_t best = windows_.best[i];
                const uint32_t bits = static_cast<uint32_t>(best >> 32);
                const uint32_t hit = line_windows::has_hit(best) ? line_windows::hit_of(best) : no_hit;
                const uint32_t found = (bits & 0xffff0000u) | hit;
                open_found_[base + i] = found;
                uint32_t& bid = bid_[min_of(hit, n_hits_)];  // behind the last hit bids for none
                bid = min_of(bid, bid_of(found, base + i));
            }
        }
    }

    /// As the common kernel does.
    void forward_tracks(uint32_t target)
    {
        bid_for_hits(target);
        const uint32_t shared_bid = __float_as_uint(cuts_.max_shared_scatter) & 0xffff0000u;
        uint32_t n_kept = 0;
        for (uint32_t i = 0; i < n_open_; ++i) {
            open_track track = open_[i];
            const uint32_t found = open_found_[i], bid = bid_of(found, i);
            const uint32_t found_hit = min_of(found & 0xffffu, n_hits_);
            const uint32_t has_hit = (found & 0xffffu) != no_hit ? 1u : 0u;
            const uint32_t lost = has_hit & (bid_[found_hit] != bid ? 1u : 0u);
            const uint32_t is_shared = (bid < shared_bid ? 1u : 0u) & ((track.state & open_shares) == 0u ? 1u : 0u);
            const uint32_t takes = has_hit & (~lost | is_shared);
            bool kept = false;
            if ((track.state & open_is_track) != 0u) {
                // No branch on what is as good as random: what does not count is written where nothing is read.
                const uint32_t index = track.state & open_index_mask, n = track_hit_count_[index];
                *(takes != 0u ? track_hits_ + index * max_velo_track_hits + n : &no_track_hit_) =
                    static_cast<uint16_t>(found_hit);
                track_hit_count_[index] = static_cast<uint8_t>(n + takes);
                *(takes != 0u ? &hits_.used[found_hit] : &no_hit_used_) = is_used;
                const uint32_t all = 0u - takes;
                const uint32_t extended = index | open_is_track | lost * open_shares;
                track.last_two = (all & (track.last_two >> 16 | found_hit << 16)) | (~all & track.last_two);
                track.state = (all & extended) | (~all & (track.state + open_skipped_unit));
                kept = track.state / open_skipped_unit <= cuts_.max_skipped_pairs;
            } else if (takes != 0u) {
                track.last_two = track.last_two >> 16 | found_hit << 16;
                kept = make_track(track.state, found_hit);
                track.state |= lost * open_shares;
            } else {
                track.state += open_skipped_unit;
                kept = track.state / open_skipped_unit <= cuts_.max_skipped_pairs;
            }
            open_[n_kept] = track;
            n_kept += kept ? 1u : 0u;
        }
        n_open_ = n_kept;
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

    static constexpr int8x32 first_lanes8{0, 1, 2, 3, 4, 5, 6, 7};

    uint16_t no_track_hit_ = 0;
    uint32_t no_hit_used_ = 0;
    const triplet_cuts& cuts_;
    const uint32_t first_hit_, first_track_, n_hits_, max_tracks_;
    const velo_hits hits_;
    const float* const module_z_;
    uint16_t* const track_hits_;
    uint8_t* const track_hit_count_;
    uint16_t* const seed_hits_;
    open_track* const open_;
    uint32_t* const open_found_;
    uint32_t* const bid_;
    uint16_t* const middle_;
    const uint32_t n_places_;
    float* const downstream_;
    uint32_t n_open_ = 0, n_tracks_ = 0, n_seeds_ = 0;
    bool overflow_ = false;

    uint32_t first_partner_[tile];  // of each middle hit of a tile
    line_windows windows_;
};

}  // namespace hlt

#endif

HLT_CPU_FORM(velo_search_by_triplet)
{
    if (!p.takes(event)) return;
#if defined(__AVX512F__) && defined(__AVX512BW__)
    const hlt::triplet_cuts cuts = hlt::triplet_cuts_of(p);
    hlt::triplet_search_cpu search(p, event, cuts);
    search.run();
    p.velo_tracks.candidate_count[event] = search.n_tracks();
    p.velo_seeds.count[event] = search.n_seeds();
    if (search.overflow()) p.events.flags[event] |= hlt::overflow;
#else
    velo_search_by_triplet(p, dim3{event, 1, 1});
#endif
}
