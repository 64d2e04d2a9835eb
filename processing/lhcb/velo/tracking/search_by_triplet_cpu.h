// Search by triplet with AVX-512: the steps of the common kernel, which has the rules, over lists of lines that are
// followed together (line_windows_cpu.h). Without AVX-512 the common kernel is run.
//
// Middle hits write their lines, up to max_partners each, by packed stores. The closest third hit of a line, and of the
// lines of a middle hit the best, is the least of keys of 64 bits: the scatter, the partner and the hit. While it runs,
// velo_hits.used has the x of the hits that are unused: no line passes near the others.
#pragma once

#include "lhcb/velo/tracking/forward_tracks_cpu.h"

#if defined(__AVX512F__) && defined(__AVX512BW__)

namespace hlt {

/// What search by triplet of one event works on.
class triplet_search_cpu : public open_tracks_cpu {
  public:
    triplet_search_cpu(const velo_search_by_triplet_parameters& p, uint32_t event, const triplet_cuts& cuts)
        : open_tracks_cpu(p, event, cuts),
          middle_(p.scratch.unused_hits + first_hit_),
          middle_phi_(p.scratch.downstream_hit + first_hit_),
          n_places_(p.velo_clusters.bound[event] + velo_hit_padding),
          downstream_(p.scratch.points + 4u * first_hit_)
    {
    }

    void run()
    {
        std::memcpy(&hits_.used[0], &hits_.x[0], n_hits_ * sizeof(uint32_t));
        for (uint32_t pair = n_velo_module_pairs - 2u; pair >= 1u; --pair) {
            forward_tracks(pair - 1u);
            const uint32_t n_middle = list_middle(pair);
            if (n_middle == 0u) continue;
            const uint32_t n_downstream = gather_downstream(pair + 1u);
            if (n_downstream == 0u) continue;
            fill_downstream(n_downstream);
            seed_tracks(pair, n_downstream, n_middle);
        }
        uint32_t* __restrict__ const used = &hits_.used[0];
        for (uint32_t i = 0, n = n_hits_; i < n; ++i) used[i] = used[i] == is_used ? 1u : 0u;
    }

  private:
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

    /// List the unused hits of the pair, and phi of each. Returns how many they are.
    uint32_t list_middle(uint32_t pair)
    {
        const uint32_t begin = hits_.module_pair_offset[pair], end = hits_.module_pair_offset[pair + 1u];
        uint32_t n = 0;
        for (uint32_t hit = begin; hit < end; hit += 8u) {
            const uint32_t unused = unused_of(hit, end);
            const uint8x16 numbers = uint8x16{0, 1, 2, 3, 4, 5, 6, 7} + static_cast<uint16_t>(hit);
            store_packed(middle_ + n, numbers, unused);
            uint8x16 phi;
            load8(phi, &hits_.phi[hit]);
            store_packed(middle_phi_ + n, phi, unused);
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

    /// Of n middle hits from `base` on the first of the hits downstream whose phi is not below theirs. All hits
    /// downstream before `nearest` are below; what it is then serves for the middle hits that follow.
    void find_nearest(uint32_t base, uint32_t n, uint32_t& nearest, uint32_t n_downstream)
    {
        const float* const at = downstream_phi_and_hit() + half;
        for (uint32_t m = 0; m < n; m += 16u) {
            const uint16_t* const phis = middle_phi_ + base + m;
            const __m512i phi = _mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(first_of(n - m), phis));
            const int32_t last_phi = static_cast<int16_t>(phis[min_of(n - m, 16u) - 1u]);
            __m512i place = _mm512_set1_epi32(static_cast<int32_t>(nearest));
            const __m512i one = _mm512_set1_epi32(1);
            for (; nearest < n_downstream; ++nearest) {
                const int32_t downstream_phi = static_cast<int16_t>(load_u32_of(at + nearest));
                if (downstream_phi >= last_phi) break;
                place = _mm512_mask_add_epi32(place, _mm512_cmpgt_epi32_mask(phi, _mm512_set1_epi32(downstream_phi)),
                                              place, one);
            }
            _mm512_storeu_si512(first_partner_ + m, place);
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
        const float step = pair_z_[pair - 1u] - pair_z_[pair];
        const bool few = n_downstream <= max_partners;
        uint32_t nearest = 0;  // first hit downstream whose phi is not below that of the middle hit; only rises
        for (uint32_t base = 0; base < n_middle; base += tile) {
            const uint32_t n = min_of(n_middle - base, tile);
            if (few)
                for (uint32_t m = 0; m < n; ++m) first_partner_[m] = first_of_few(n_downstream);
            else
                find_nearest(base, n, nearest, n_downstream);
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

    /// The best line of each of n middle hits becomes a seed.
    void make_seeds(uint32_t base, uint32_t n)
    {
        const __m512i partner_bits = _mm512_set1_epi32(max_partners - 1u), low_half = _mm512_set1_epi32(no_hit);
        for (uint32_t m = 0; m < n; m += 16u) {
            const best_of_lines best = best_of(m);
            const __mmask16 found = _mm512_mask_cmpneq_epi32_mask(first_of(n - m), best.hit, low_half);
            const __m512i place =
                _mm512_add_epi32(_mm512_loadu_si512(first_partner_ + m), _mm512_and_si512(best.rank, partner_bits));
            const __m512i first =
                _mm512_srli_epi32(_mm512_mask_i32gather_epi32(low_half, found, place, downstream_phi_and_hit(), 4), 16);
            const __m512i middle = _mm512_cvtepu16_epi32(
                _mm256_maskz_loadu_epi16(first_of(n - m), reinterpret_cast<const int16_t*>(middle_ + base + m)));
            const __m512i third = best.hit;
            const __m512i first_two =
                _mm512_maskz_compress_epi32(found, _mm512_or_si512(first, _mm512_slli_epi32(middle, 16)));
            const __m512i last_one = _mm512_maskz_compress_epi32(found, third);  // above it: seed_left
            const uint32_t n_found = static_cast<uint32_t>(__builtin_popcount(found));
            uint16_t* const to = seed_hits_ + 4u * n_seeds_;
            const __mmask16 stored = static_cast<__mmask16>(first_bits(2u * min_of(n_found, 8u)));
            const __mmask16 stored_behind = static_cast<__mmask16>(first_bits(2u * max_of(n_found, 8u) - 16u));
            _mm512_mask_storeu_epi32(to, stored, _mm512_permutex2var_epi32(first_two, zipped(0), last_one));
            _mm512_mask_storeu_epi32(to + 32, stored_behind, _mm512_permutex2var_epi32(first_two, zipped(8), last_one));
            const __m512i last_two =
                _mm512_maskz_compress_epi32(found, _mm512_or_si512(middle, _mm512_slli_epi32(third, 16)));
            const __m512i seed = _mm512_add_epi32(sixteen_numbers(), _mm512_set1_epi32(static_cast<int32_t>(n_seeds_)));
            _mm512_mask_storeu_epi32(open_last_two_ + n_open_, first_of(n_found), last_two);
            _mm512_mask_storeu_epi32(open_state_ + n_open_, first_of(n_found), seed);
            n_seeds_ += n_found;
            n_open_ += n_found;
        }
        static_assert(seed_left == 0);
    }

    /// Lanes of two vectors in turn, from a lane on.
    static __m512i zipped(uint32_t first)
    {
        const __m512i numbers = sixteen_numbers(), one = _mm512_set1_epi32(1);
        const __m512i lane =
            _mm512_add_epi32(_mm512_srli_epi32(numbers, 1), _mm512_set1_epi32(static_cast<int>(first)));
        return _mm512_or_si512(lane, _mm512_slli_epi32(_mm512_and_si512(numbers, one), 4));
    }

    static uint32_t load_u32_of(const float* from)
    {
        uint32_t word;
        std::memcpy(&word, from, sizeof word);
        return word;
    }

    static constexpr int8x32 first_lanes8{0, 1, 2, 3, 4, 5, 6, 7};

    uint16_t* const middle_;
    uint16_t* const middle_phi_;
    const uint32_t n_places_;
    float* const downstream_;
    uint32_t first_partner_[tile];  // of each middle hit of a tile
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
