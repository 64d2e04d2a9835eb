// Ends of segments, and how well one continues another on a helix.
#pragma once

#include "alice/tpc/merging/segments/segment.cuh"

namespace hlt {

/// Ends of the segments of an event: number 2 * segment is the inner one, the next one the outer one.
struct tpc_ends {
    const tpc_segment_end *inner, *outer;

    __device__ const tpc_segment_end& operator[](uint32_t end) const
    {
        return end % 2u == 0u ? inner[end / 2u] : outer[end / 2u];
    }
};

/// The end of a segment with its parameters there; axis: of its slice. `outer`: the way out goes along the track, else
/// against it.
__device__ tpc_segment_end end_of(const tpc_filter& filter, const tpc_state& t, uint32_t slice,
                                  const tpc_direction& axis, bool outer)
{
    const float c = square_root(1.f - t.s * t.s), unit = curvature_of_unit(filter, t.x, t.y, t.z);
    const float side = slice < tpc_slices_of_side ? 1.f : -1.f, sign = outer ? 1.f : -1.f;
    const tpc_direction at = turned({t.x, t.y}, axis), along = turned({c, t.s}, axis);
    return {at.x,
            at.y,
            side * t.z,
            sign * along.x,
            sign * along.y,
            sign * unit * t.q,
            sign * side * t.l,
            t.yy * c * c,
            sign * t.sy,
            t.ss / (c * c),
            unit * t.qy * c,
            sign * unit * t.qs / c,
            unit * unit * t.qq,
            t.zz,
            sign * t.lz,
            t.ll};
}

/// Angle of a place with x >= 0 and y >= 0, from 0 to pi / 2. Error below 1e-5: C. Hastings, "Approximations for
/// Digital Computers", Princeton, 1955, sheet 11.
__device__ float angle_of_quadrant(float x, float y)
{
    const bool steep = y > x;
    const float ratio = steep ? x / y : (x > 0.f ? y / x : 0.f), u = ratio * ratio;
    const float angle =
        ratio * (0.9998660f + u * (-0.3302995f + u * (0.1801410f + u * (-0.0851330f + u * 0.0208351f))));
    return steep ? 1.57079633f - angle : angle;
}

/// Angle of a place, from -pi to pi.
__device__ float angle_at(float x, float y)
{
    const float angle = angle_of_quadrant(x < 0.f ? -x : x, y < 0.f ? -y : y);
    const float half = x < 0.f ? 3.14159265f - angle : angle;
    return y < 0.f ? -half : half;
}

/// Tolerances beyond the covariance, and limits.
struct tpc_continuation {
    float distance, angle, curvature, z, slope;  // of distance, angle, curvature (relative), z, slope
    float max_gap, max_overlap;                  // cm of the way
};

/// chi2 of five differences, and the way between two ends in cm.
struct tpc_difference {
    float chi2, gap;
};

constexpr float tpc_no_continuation = 1e30f;

constexpr float tpc_above_rounding = 1.0001f;

/// Whether the difference of slopes alone makes chi2 larger than a limit, without divisions: most pairs of ends do not
/// pass. It allows for rounding, so it refuses no pair that `continuation` would accept, if the covariances of both
/// ends are positive semidefinite: else another term of chi2 may be negative behind a long gap. A `Lanes` is a float or
/// a vector of floats.
template <typename Lanes>
__device__ __forceinline__ auto slopes_differ_too_much(const tpc_continuation& limits, const tpc_segment_end& a,
                                                       const Lanes& b, const Lanes& variance, float max_chi2)
{
    const Lanes slope = a.slope + b;
    return slope * slope > max_chi2 * tpc_above_rounding * (a.ll + variance + square(limits.slope));
}

/// The same of curvatures.
template <typename Lanes>
__device__ __forceinline__ auto curvatures_differ_too_much(const tpc_continuation& limits, const tpc_segment_end& a,
                                                           const Lanes& b, const Lanes& variance, float max_chi2)
{
    const Lanes bend = a.curvature + b;
    return bend * bend > max_chi2 * tpc_above_rounding * (a.kk + variance + square(limits.curvature * a.curvature));
}

/// Whether the way out of `a` surely passes `b` in its direction, or at a distance that alone makes chi2 larger than a
/// limit, without roots and divisions. It refuses no pair that `continuation` would accept: the variance of the
/// distance after less than a sixth of a turn is at most three times the sum of its terms, whose derivatives are
/// bounded here.
__device__ bool misses(const tpc_continuation& limits, const tpc_segment_end& a, const tpc_segment_end& b,
                       float max_chi2)
{
    constexpr float above_rounding = 1.001f, least_cosine = 1e-3f, least_q = 0.5f;
    const float k = a.curvature, dx = b.x - a.x, dy = b.y - a.y;
    const float t = dx * a.along_x + dy * a.along_y, w = dy * a.along_x - dx * a.along_y;
    const float p = k * t, q = 1.f - k * w, most_m = (p < 0.f ? -p : p) + (q < 0.f ? -q : q);
    const float ex = a.along_x * q - a.along_y * p, ey = a.along_y * q + a.along_x * p;
    if (ex * b.along_x + ey * b.along_y > least_cosine * most_m) return true;
    // Here m >= q >= 1/2, so |t / m| <= 2 |t| and t^2 / (m (m + q)) <= 2 t^2.
    if (!(q >= least_q)) return false;
    const float distance = 2.f * w - k * (t * t + w * w), t2 = 4.f * t * t;
    const float variance = 3.f * (a.dd + t2 * a.ff + t2 * t * t * a.kk) + b.dd + square(limits.distance);
    return distance * distance > above_rounding * max_chi2 * variance * square(1.f + most_m);
}

/// An arc of at most half a turn is shorter than this many chords.
constexpr float tpc_arc_of_chord = 1.58f;
/// cm: smaller differences in z may be those of the fits.
constexpr float tpc_least_time_shift = 1.f;

/// Whether two ends lead to the central electrode from both sides, and are too far apart in z for one helix. The
/// clusters of another collision come at another time: they lie shifted in z by the same way on both sides, in opposite
/// directions.
__device__ bool is_out_of_time(const tpc_segment_end& a, const tpc_segment_end& b)
{
    if (!(a.z * b.z < 0.f && a.z * a.slope < 0.f && b.z * b.slope < 0.f)) return false;
    const float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z, slope = a.slope < 0.f ? -a.slope : a.slope;
    const float apart = (dz < 0.f ? -dz : dz) - tpc_least_time_shift;
    return apart > tpc_arc_of_chord * slope * square_root(dx * dx + dy * dy);
}

/// The differences between the way out of `a` and the way into `b`; chi2 is tpc_no_continuation if the way is too long,
/// or b is not met in its direction. out_of_time: the difference in z is that of the distances to the central
/// electrode, and the error as large as the way in z, since the way crosses the electrode anywhere between both ends.
__device__ tpc_difference continuation(const tpc_continuation& limits, const tpc_segment_end& a,
                                       const tpc_segment_end& b, bool out_of_time)
{
    constexpr tpc_difference none{tpc_no_continuation, 0.f};
    const float k = a.curvature, dx = b.x - a.x, dy = b.y - a.y;
    const float t = dx * a.along_x + dy * a.along_y, w = dy * a.along_x - dx * a.along_y;
    const float p = k * t, q = 1.f - k * w, m = square_root(p * p + q * q);
    if (!(m > 0.1f)) return none;
    const float cosine = q / m, sine = p / m;
    // Direction on the circle at the foot of the perpendicular from b.
    const float ex = a.along_x * cosine - a.along_y * sine, ey = a.along_y * cosine + a.along_x * sine;
    if (ex * b.along_x + ey * b.along_y >= 0.f) return none;
    const float size = k < 0.f ? -k : k;
    float turn = angle_at(q, p), gap;
    if (size * limits.max_gap > 1e-3f) {
        gap = turn / k;
        if (gap < -limits.max_overlap) gap += 6.2831853f / size;
    } else {
        gap = t;
    }
    if (!(gap >= -limits.max_overlap && gap <= limits.max_gap)) return none;
    const float distance = (2.f * w - k * (t * t + w * w)) / (1.f + m);
    const float angle = ey * b.along_x - ex * b.along_y;
    const float bend = a.curvature + b.curvature, slope = a.slope + b.slope;
    const float z = out_of_time ? a.z + b.z : b.z - a.z - gap * 0.5f * (a.slope - b.slope);

    // Derivatives of a distance on a circle: d'' + k^2 d = change of k.
    const float by_f = t / m, by_k = q > 0.f ? t * t / (m * (m + q)) : (1.f - cosine) / (k * k);
    const float f_by_d = -k * sine;
    const float dd = cosine * cosine * a.dd + by_f * by_f * a.ff + by_k * by_k * a.kk +
                     2.f * (cosine * by_f * a.df + cosine * by_k * a.dk + by_f * by_k * a.fk);
    const float ff = f_by_d * f_by_d * a.dd + cosine * cosine * a.ff + by_f * by_f * a.kk +
                     2.f * (f_by_d * cosine * a.df + f_by_d * by_f * a.dk + cosine * by_f * a.fk);
    const float crossing = out_of_time ? square(a.slope * gap) : 0.f;
    const float zz = a.zz + b.zz + gap * (a.lz + 0.25f * gap * a.ll) + gap * (b.lz + 0.25f * gap * b.ll) +
                     square(a.slope) * (1.f + square(k * gap)) * limits.distance * limits.distance + crossing;
    const float chi2 = distance * distance / (dd + b.dd + square(limits.distance)) +
                       angle * angle / (ff + b.ff + square(limits.angle)) +
                       bend * bend / (a.kk + b.kk + square(limits.curvature * k)) + z * z / (zz + square(limits.z)) +
                       slope * slope / (a.ll + b.ll + square(limits.slope));
    return {chi2, gap};
}

/// Sum of chi2 and of chi2 for the way, in both directions between two ends; tpc_no_continuation if one is too large.
__device__ float score_of_both_ways(const tpc_continuation& limits, const tpc_segment_end& a, const tpc_segment_end& b,
                                    float max_chi2, float chi2_of_gap)
{
    const tpc_difference there = continuation(limits, a, b, false);
    if (!(there.chi2 < max_chi2)) return tpc_no_continuation;
    const tpc_difference back = continuation(limits, b, a, false);
    if (!(back.chi2 < max_chi2)) return tpc_no_continuation;
    return (there.chi2 + back.chi2) + chi2_of_gap * (max_of(there.gap, 0.f) + max_of(back.gap, 0.f));
}

/// cm: closest approach to the beam of particles that may come from it.
constexpr float tpc_beam_width = 2.f;

/// The bin of a segment: |slope|, and the axis through the beam and the centre of the circle. All segments of a helix
/// have the same ones, also those on which the particle flies inwards, whose direction and curvature are opposite. A
/// short segment knows its curvature badly: if it may come from the beam, that of a circle through the beam counts too.
__device__ uint32_t bin_of_segment(const tpc_segment_end& end)
{
    const float over_r2 = 1.f / (end.x * end.x + end.y * end.y);
    const float from_beam = 2.f * (end.x * end.along_y - end.y * end.along_x) * over_r2;
    const float variance = square(2.f * tpc_beam_width * over_r2);
    float k = end.curvature;
    if (square(k - from_beam) <= 9.f * (end.kk + variance))
        k = (k * variance + from_beam * end.kk) / (variance + end.kk);
    float x = k * end.x - end.along_y, y = k * end.y + end.along_x;
    if (y < 0.f || (!(y > 0.f) && x < 0.f)) {
        x = -x;
        y = -y;
    }
    const float sum = (x < 0.f ? -x : x) + y;
    const float place = sum > 0.f ? (x < 0.f ? 2.f - y / sum : y / sum) : 0.f;
    const float slope = end.slope < 0.f ? -end.slope : end.slope;
    const uint32_t direction =
        min_of(static_cast<uint32_t>(place * (0.5f * tpc_direction_bins)), tpc_direction_bins - 1u);
    const uint32_t line = slope < 1.6f ? static_cast<uint32_t>(slope * (tpc_slope_bins / 1.6f)) : tpc_slope_bins - 1u;
    return min_of(line, tpc_slope_bins - 1u) * tpc_direction_bins + direction;
}

}  // namespace hlt
