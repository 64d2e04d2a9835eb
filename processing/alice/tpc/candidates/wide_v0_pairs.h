// The search of v0_pairs.cuh with partners of a track in the lanes of a vector.
#pragma once

#include "alice/tpc/candidates/v0_pairs.cuh"
#include "alice/tpc/clusters/wide_places.h"

namespace hlt {

/// Partners of a track, one in each lane.
struct wide_v0_tracks {
    float_wide x, y, z, mx, my, e, k, slope;
};

class wide_v0_search {
  public:
    wide_v0_search(const tpc_v0_limits& limits, const tpc_v0_tracks& of) : limits_(limits), of_(of) {}

    /// tpc_v0_tracks::for_candidates, with the candidates in the same order.
    template <typename Take>
    void for_candidates(uint32_t i, const Take& take)
    {
        const tpc_v0_track& own = of_.tracks[i];
        n_held_ = 0;
        for_near_columns(i, [&](uint32_t first, uint32_t last) {
            for (; first < last; first += n_wide) {
                hold(own, first, min_of(last - first, n_wide));
                if (n_held_ >= n_wide) take_held(own, i, take);
            }
        });
        if (n_held_ != 0u) take_held(own, i, take);
    }

  private:
    /// tpc_v0_tracks::for_near_bins, with adjacent bins in one call.
    template <typename Visit>
    void for_near_columns(uint32_t i, const Visit& visit) const
    {
        uint32_t first = 0, last = 0;
        of_.for_near_bins(i, [&](uint32_t begin, uint32_t end) {
            if (begin != last) {
                visit(first, last);
                first = begin;
            }
            last = end;
        });
        visit(first, last);
    }

    /// Hold those of up to n_wide partners that may meet the track.
    void hold(const tpc_v0_track& a, uint32_t first, uint32_t n)
    {
        uint_wide partners{};
        std::memcpy(&partners, of_.partners + first, n * sizeof(uint32_t));
        const float_wide significance = column(partners, &tpc_v0_track::significance);
        const int_wide is_displaced =
            (a.significance < significance ? significance : in_all_lanes<float_wide>(a.significance)) >=
            limits_.min_larger_significance;
        const int_wide meets =
            may_meet(limits_, a, column(partners, &tpc_v0_track::slope), column(partners, &tpc_v0_track::z_beam));
        const uint32_t bits = bits_of(is_displaced & meets) & first_bits(n);
        store_packed_wide(held_ + n_held_, partners, bits);
        n_held_ += static_cast<uint32_t>(__builtin_popcount(bits));
    }

    /// Take the first n_wide partners that are held, or all.
    template <typename Take>
    void take_held(const tpc_v0_track& a, uint32_t i, const Take& take)
    {
        const uint32_t n = min_of(n_held_, n_wide);
        uint_wide partners{};
        std::memcpy(&partners, held_, n * sizeof(uint32_t));
        const wide_v0_tracks b{
            column(partners, &tpc_v0_track::x),  column(partners, &tpc_v0_track::y),
            column(partners, &tpc_v0_track::z),  column(partners, &tpc_v0_track::mx),
            column(partners, &tpc_v0_track::my), column(partners, &tpc_v0_track::e),
            column(partners, &tpc_v0_track::k),  column(partners, &tpc_v0_track::slope),
        };
        for (uint32_t bits = bits_of(are_close(a, b)) & first_bits(n); bits != 0u; bits &= bits - 1u)
            of_.take_pair(limits_, i, held_[lowest_bit(bits)], take);
        n_held_ -= n;
        std::memmove(held_, held_ + n, n_held_ * sizeof(uint32_t));
    }

    float_wide column(const uint_wide& tracks, const float tpc_v0_track::* number) const
    {
        return floats_of(&(of_.tracks->*number), tracks * (sizeof(tpc_v0_track) / sizeof(float)));
    }

    /// Whether an allowed place of closest_place has tracks within max_dca: all operations are those of one pair, so no
    /// candidate is lost.
    int_wide are_close(const tpc_v0_track& a, const wide_v0_tracks& b) const
    {
        const float ka = a.k < 0.f ? -a.k : a.k;
        const float_wide kb = absolute(b.k), of_a = kb / (ka + kb), of_b = ka / (ka + kb);
        const float_wide gx = of_a * a.mx + of_b * b.mx, gy = of_a * a.my + of_b * b.my, g2 = gx * gx + gy * gy;
        const float_wide foot = (of_a * a.e + of_b * b.e) / g2, inverse = 1.f / square_root(g2);
        const float_wide x0 = gx * foot, y0 = gy * foot, ux = -gy * inverse, uy = gx * inverse;
        const float square_term = 0.5f * a.k;
        const float_wide line_term = -(a.mx * ux + a.my * uy);
        const float_wide constant = square_term * (x0 * x0 + y0 * y0) - (a.mx * x0 + a.my * y0) + a.e;
        const float_wide discriminant = line_term * line_term - 4.f * square_term * constant;
        const int_wide crosses = discriminant >= 0.f, is_defined = g2 > 1e-6f;
        int_wide found{};
        if (bits_of(crosses) != 0u) {
            const float_wide root = square_root(discriminant);
            const float_wide q = -0.5f * (line_term < 0.f ? line_term - root : line_term + root);
            const float_wide near = (q < 0.f) | (q > 0.f) ? constant / q : float_wide{};
            for (const float_wide& place : {near, q / square_term}) {
                const float_wide x = x0 + place * ux, y = y0 + place * uy;
                found |= crosses & are_close_at(a, b, x, y, x, y, x, y, float_wide{});
            }
        }
        if ((bits_of(crosses) ^ all_wide) != 0u) {
            const float_wide place = -0.5f * line_term / square_term;
            const float_wide x = x0 + place * ux, y = y0 + place * uy;
            const float_wide ax = a.mx - a.k * x, ay = a.my - a.k * y, bx = b.mx - b.k * x, by = b.my - b.k * y;
            const float_wide sa = square_root(ax * ax + ay * ay), sb = square_root(bx * bx + by * by);
            const float_wide da = (sa - 1.f) / a.k, db = (sb - 1.f) / b.k;
            const float_wide apart = absolute(da) + absolute(db);
            found |=
                ~crosses & (ax * bx + ay * by > 0.f) &
                are_close_at(a, b, x, y, x + ax / sa * da, y + ay / sa * da, x + bx / sb * db, y + by / sb * db, apart);
        }
        return found & is_defined;
    }

    int_wide are_close_at(const tpc_v0_track& a, const wide_v0_tracks& b, const float_wide& x, const float_wide& y,
                          const float_wide& ax, const float_wide& ay, const float_wide& bx, const float_wide& by,
                          const float_wide& apart) const
    {
        const float_wide r2 = x * x + y * y;
        const int_wide is_inside = (r2 >= square(limits_.min_radius)) & (r2 <= square(limits_.max_radius));
        const tpc_v0_step_of<float_wide> of_a = v0_step(a, ax, ay), of_b = v0_step(b, bx, by);
        const int_wide is_allowed =
            of_a.is_reached & of_b.is_reached & (of_a.way <= limits_.max_ahead) & (of_b.way <= limits_.max_ahead);
        const float_wide dca2 = square(apart) + square(absolute(of_a.z - of_b.z));
        return is_inside & is_allowed & (dca2 <= square(limits_.max_dca));
    }

    const tpc_v0_limits& limits_;
    const tpc_v0_tracks& of_;
    uint32_t n_held_ = 0;
    uint32_t held_[2u * n_wide];  // up to n_wide - 1, and a vector behind them
};

}  // namespace hlt
