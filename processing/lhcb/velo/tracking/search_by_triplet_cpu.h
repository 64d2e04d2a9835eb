// Search by triplet with AVX-512 or AVX2: the steps and rules of the common kernel for lists of lines that are followed
// together (line_windows_cpu.h). Without either instruction set the common kernel runs.
//
// Packed stores write the lines of middle hits, up to max_partners each. A key of 64 bits holds the scatter, the
// partner and the hit. The least key gives the closest third hit of a line and the best line of a middle hit. Until the
// end of the search velo_hits.used holds the x of unused hits, and a NaN for used hits: no line passes near a NaN.
#pragma once

#include "lhcb/velo/tracking/forward_tracks_cpu.h"

#if defined(__AVX2__)

namespace hlt {

/// The search by triplet of one event.
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

    /// Bit k is set if hit first + k is unused, for eight hits; bits of hits from `end` on are not set.
    uint32_t unused_of(uint32_t first, uint32_t end) const
    {
        int8x32 used;
        load8(used, &hits_.used[first]);
        return bits_of((used != static_cast<int32_t>(is_used)) & (first_lanes8 < static_cast<int32_t>(end - first)));
    }

    /// List the unused hits of the pair, and phi of each. Returns their number.
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

    /// Copy the unused hits of the pair to the columns of partners. Returns their number.
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
            const uint8x32 phi_and_hit = widened(phi) | (uint8x32{0, 1, 2, 3, 4, 5, 6, 7} + hit) << 16;
            keep(downstream_x() + half + n, x, unused, n);
            keep(downstream_y() + half + n, y, unused, n);
            keep(downstream_z() + half + n, z, unused, n);
            keep(downstream_phi_and_hit() + half + n, phi_and_hit, unused, n);
            n += static_cast<uint32_t>(__popc(unused));
        }
        return n;
    }

    /// Store the lanes whose bits are set; n lanes were stored before.
    template <typename Vector>
    void keep(float* to, const Vector& lanes, uint32_t bits, uint32_t n) const
    {
        if (half + n + 8u <= n_places_) {
            store_packed(to, lanes, bits);
        } else {  // nearly all hits of the event: a full vector would pass the last place
            float packed[8];
            store_packed(packed, lanes, bits);
            std::memcpy(to, packed, static_cast<uint32_t>(__popc(bits)) * sizeof *to);
        }
    }

    /// Fill the places before and behind the hits downstream as the common kernel does.
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

    /// Find the first hit downstream whose phi is not below that of the middle hit, for n middle hits from `base` on.
    /// All hits downstream before `nearest` are below; it is updated for the middle hits that follow.
    void find_nearest(uint32_t base, uint32_t n, uint32_t& nearest, uint32_t n_downstream)
    {
        const float* const at = downstream_phi_and_hit() + half;
        for (uint32_t m = 0; m < n; m += n_wide) {
            const uint16_t* const phis = middle_phi_ + base + m;
            const int_wide phi = (int_wide)(load_first_wide(phis, n - m) << 16) >> 16;
            const int32_t last_phi = static_cast<int16_t>(phis[min_of(n - m, n_wide) - 1u]);
            uint_wide place = uint_wide{} + nearest;
            for (; nearest < n_downstream; ++nearest) {
                const int32_t downstream_phi = static_cast<int16_t>(__float_as_uint(at[nearest]));
                if (downstream_phi >= last_phi) break;
                place = wide_mask::less(int_wide{} + downstream_phi, phi).choose(place + 1u, place);
            }
            store_wide(first_partner_ + m, place);
        }
    }

    /// Write the lines through middle hit m of the tile and its partners, max_partners from place `first` on, as lines
    /// from n on. Returns the number of lines.
    uint32_t add_lines(uint32_t n, uint32_t m, uint32_t hit, uint32_t first)
    {
        float8 x, y, z;
        uint8x32 phi;
        load8(x, downstream_x() + first);
        load8(y, downstream_y() + first);
        load8(z, downstream_z() + first);
        load8(phi, downstream_phi_and_hit() + first);
        const float8 middle_x = (float8)_mm256_set1_ps(hits_.x[hit]), middle_y = (float8)_mm256_set1_ps(hits_.y[hit]);
        const float8 middle_z = (float8)_mm256_set1_ps(hits_.z[hit]);
        const uint8x32 turned = (phi - static_cast<uint32_t>(static_cast<int32_t>(hits_.phi[hit]))) << 16;
        const int8x32 distance = (int8x32)_mm256_abs_epi32((__m256i)((int8x32)turned >> 16));
        const float8 dx = x - middle_x, dy = y - middle_y, dz = z - middle_z;
        const float8 d2 = dx * dx + dy * dy, dz2 = dz * dz;
        const float8 max2 =
            distance > cuts_.phi_tolerance ? float8{} + cuts_.max_displaced_slope2 : float8{} + cuts_.max_slope2;
        const uint32_t chosen = bits_of((distance <= cuts_.displaced_phi_tolerance) & (d2 <= max2 * dz2));
        store_packed(windows_.ax + n, x, chosen);
        store_packed(windows_.ay + n, y, chosen);
        store_packed(windows_.az + n, z, chosen);
        store_packed(windows_.group_and_place + n, lane_numbers + m * line_windows::group_size, chosen);
        store_lanes(windows_.bx + n, middle_x);
        store_lanes(windows_.by + n, middle_y);
        store_lanes(windows_.bz + n, middle_z);
        return n + static_cast<uint32_t>(__popc(static_cast<int>(chosen)));
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
        for (uint32_t m = 0; m < n; m += n_wide) {
            const best_of_lines best = best_of(m);
            const wide_mask found = wide_mask::of_first(n - m) & ~wide_mask::equal(best.hit, uint_wide{} + no_hit);
            uint_wide place;
            load_wide(place, first_partner_ + m);
            place += best.rank & (max_partners - 1u);
            const uint_wide first = found.words_at(downstream_phi_and_hit(), place) >> 16;
            const uint_wide middle = load_first_wide(middle_ + base + m, n - m);
            const uint32_t bits = found.bits(), n_found = static_cast<uint32_t>(__popc(static_cast<int>(bits)));
            const uint_wide first_two = packed_wide(first | middle << 16, bits);
            const uint_wide last_one = packed_wide(best.hit, bits);  // above it: seed_left
            uint16_t* const to = seed_hits_ + 4u * n_seeds_;
            constexpr uint32_t half_wide = n_wide / 2u;
            store_first_wide(to, in_turn<false>(first_two, last_one), 2u * min_of(n_found, half_wide));
            store_first_wide(to + 4u * half_wide, in_turn<true>(first_two, last_one),
                             2u * (max_of(n_found, half_wide) - half_wide));
            store_first_wide(open_last_two_ + n_open_, packed_wide(middle | best.hit << 16, bits), n_found);
            store_first_wide(open_state_ + n_open_, wide_numbers + n_seeds_, n_found);
            n_seeds_ += n_found;
            n_open_ += n_found;
        }
        static_assert(seed_left == 0);
    }

    static constexpr int8x32 first_lanes8{0, 1, 2, 3, 4, 5, 6, 7};

    uint16_t* const middle_;
    uint16_t* const middle_phi_;
    const uint32_t n_places_;
    float* const downstream_;
    alignas(64) uint32_t first_partner_[tile];  // of each middle hit of a tile
};

}  // namespace hlt

#endif

HLT_CPU_FORM(velo_search_by_triplet)
{
    if (!p.takes(event)) return;
#if defined(__AVX2__)
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
