// The ends near a segment that may continue one of its ends, in the lanes of vectors.
#pragma once

#include "alice/tpc/clusters/wide_places.h"
#include "alice/tpc/merging/links/links.cuh"
#include "alice/tpc/merging/segments/near_ends.cuh"

namespace hlt {

/// Ends with directions and errors, for n_wide of them at once.
class wide_ends {
  public:
    static constexpr uint32_t capacity = 64;

    uint32_t size() const { return n_; }
    void clear() { n_ = 0; }
    uint32_t end(uint32_t i) const { return end_[i]; }

    bool is_full() const { return n_ >= capacity; }
    /// Add the ends of the lanes whose bits are set, without a branch for each: there is one in most vectors.
    void add(const uint_wide& numbers, uint32_t bits)
    {
        store_packed_wide(end_ + n_, numbers, bits);
        n_ += static_cast<uint32_t>(__popc(static_cast<int>(bits)));
    }
    void load(const tpc_ends& ends)
    {
        for (uint32_t i = 0; i < n_; ++i) {
            const tpc_segment_end& end = ends[end_[i]];
            x_[i] = end.x;
            y_[i] = end.y;
            along_x_[i] = end.along_x;
            along_y_[i] = end.along_y;
            dd_[i] = end.dd;
            ff_[i] = end.ff;
        }
    }

    /// Bit l is set unless chi2 of distance and angle alone is above the limit for the way out of `a` to end i + l, or
    /// the way does not meet that end in its direction. The operations are those of `continuation`.
    uint32_t may_continue(const tpc_continuation& limits, const tpc_segment_end& a, float max_chi2, uint32_t i) const
    {
        float_wide x, y, along_x, along_y, b_dd, b_ff;
        load_wide(x, x_ + i);
        load_wide(y, y_ + i);
        load_wide(along_x, along_x_ + i);
        load_wide(along_y, along_y_ + i);
        load_wide(b_dd, dd_ + i);
        load_wide(b_ff, ff_ + i);
        const float k = a.curvature;
        const float_wide dx = x - a.x, dy = y - a.y;
        const float_wide t = dx * a.along_x + dy * a.along_y, w = dy * a.along_x - dx * a.along_y;
        const float_wide p = k * t, q = 1.f - k * w, m = square_root(p * p + q * q);
        const float_wide cosine = q / m, sine = p / m;
        const float_wide ex = a.along_x * cosine - a.along_y * sine, ey = a.along_y * cosine + a.along_x * sine;
        const float_wide distance = (2.f * w - k * (t * t + w * w)) / (1.f + m);
        const float_wide angle = ey * along_x - ex * along_y;
        const float_wide by_f = t / m, by_k = q > 0.f ? t * t / (m * (m + q)) : (1.f - cosine) / (k * k);
        const float_wide f_by_d = -k * sine;
        const float_wide dd = cosine * cosine * a.dd + by_f * by_f * a.ff + by_k * by_k * a.kk +
                              2.f * (cosine * by_f * a.df + cosine * by_k * a.dk + by_f * by_k * a.fk);
        const float_wide ff = f_by_d * f_by_d * a.dd + cosine * cosine * a.ff + by_f * by_f * a.kk +
                              2.f * (f_by_d * cosine * a.df + f_by_d * by_f * a.dk + cosine * by_f * a.fk);
        const float_wide chi2 = distance * distance / (dd + b_dd + limits.distance * limits.distance) +
                                angle * angle / (ff + b_ff + limits.angle * limits.angle);
        const int_wide misses = (ex * along_x + ey * along_y >= 0.f) | (chi2 > max_chi2 * tpc_above_rounding);
        return first_bits(n_ - i) & ~bits_of(misses);
    }

  private:
    uint32_t n_ = 0, end_[capacity + n_wide];
    float x_[capacity + n_wide] = {}, y_[capacity + n_wide] = {};
    float along_x_[capacity + n_wide] = {}, along_y_[capacity + n_wide] = {};
    float dd_[capacity + n_wide] = {}, ff_[capacity + n_wide] = {};
};

/// The segments of an event by bins, their ends, and a limit of chi2.
struct wide_end_search {
    tpc_near_ends near;
    tpc_ends ends;
    const uint32_t *sorted, *begins;
    tpc_continuation limits;
    float max_chi2;

    /// Calls `take(own, k)` for each end k of another segment in the bins around `bin` that may continue end `own` of a
    /// segment, in any order. `found`: memory for each of both ends, which is empty.
    template <typename Take>
    void operator()(uint32_t segment, uint32_t bin, wide_ends* found, const Take& take) const
    {
        for_near_bins(begins, bin, [&](uint32_t first, uint32_t last) {
            for (uint32_t at = 2u * first; at < 2u * last; at += n_wide) {
                const uint32_t there = first_bits(2u * last - at);
                float_wide slope, curvature, slope_variance, curvature_variance;
                load_wide_where(slope, near.slope + at, there);
                load_wide_where(curvature, near.curvature + at, there);
                load_wide_where(slope_variance, near.slope_variance + at, there);
                load_wide_where(curvature_variance, near.curvature_variance + at, there);
                const uint_wide of = words_of<4>(sorted, min_lanes((wide_numbers + at) / 2u, last - 1u));
                for (uint32_t side = 0; side < 2u; ++side) {
                    const uint32_t own = 2u * segment + side;
                    const int_wide differs =
                        slopes_differ_too_much(limits, ends[own], slope, slope_variance, max_chi2) |
                        curvatures_differ_too_much(limits, ends[own], curvature, curvature_variance, max_chi2);
                    const uint32_t bits = there & ~bits_of(differs | (of == segment));
                    found[side].add(2u * of + (wide_numbers + at) % 2u, bits);
                    if (found[side].is_full()) take_all(own, found[side], take);
                }
            }
        });
        for (uint32_t side = 0; side < 2u; ++side) take_all(2u * segment + side, found[side], take);
    }

  private:
    template <typename Take>
    void take_all(uint32_t own, wide_ends& found, const Take& take) const
    {
        found.load(ends);
        for (uint32_t i = 0; i < found.size(); i += n_wide)
            for (uint32_t bits = found.may_continue(limits, ends[own], max_chi2, i); bits != 0u; bits &= bits - 1u)
                take(own, found.end(i + lowest_bit(bits)));
        found.clear();
    }
};

template <typename Parameters>
wide_end_search end_search_of(const Parameters& p, uint32_t event, const tpc_continuation& limits, float max_chi2)
{
    const uint32_t first = p.tpc_tracks.first(event);
    return {near_ends_of(p, first),
            {p.tpc_tracks.inner + first, p.tpc_tracks.outer + first},
            p.tpc_tracks.sorted + first,
            p.tpc_tracks.bin_begins + event * (tpc_segment_bins + 1u),
            limits,
            max_chi2};
}

}  // namespace hlt
