// A track in a slice: a helix, and its Kalman filter with measurements of y and z (D. Rohr, "ALICE TPC Online Tracking
// on GPU based on Kalman Filter", diploma thesis, Heidelberg, 2010, sections 2.1.4 to 2.1.6).
//
// Parameters at a given x: y, z, s = sin(phi) with phi the angle of the transverse momentum to the x axis, l = pz / pT,
// and q = charge / pT in c/GeV. s changes by k = curvature per cm of x, with k = -0.000299792458 q Bz, Bz in kG: a
// positive particle turns clockwise. z is the drift coordinate, |z|. Corrections of formulas of the thesis: the angle
// in the step of z is half of the sum of both angles, l is the slope to the transverse arc, and the covariances in the
// gain are the predicted ones. The derivatives are not in the thesis; those of z by s and q are left out, so that (y,
// s, q) and (z, l) stay apart. All float; no function that rounds differently on a GPU.
#pragma once

#include "framework/device/lanes.cuh"

namespace hlt {

/// Parameters of a filter.
struct tpc_filter {
    /// sigma_y^2 = y_constant + y_drift * drift / pad + y_angle * pad * tan^2(phi), with the length of a pad in cm;
    /// sigma_z^2 alike, with the slope of z to x.
    float y_constant, y_drift, y_angle, z_constant, z_drift, z_angle;
    float max_sin_phi, radiation_length, mass_square;
    float half_length, b0, z2, z4;
};

/// A track or, with vectors of floats, a track in each lane. All functions of lanes do the same operations in the same
/// order as those of one track, so their results are the same bits.
template <typename Number>
struct tpc_state_of {
    Number x, y, z, s, l, q;
    Number yy, sy, ss, qy, qs, qq, zz, lz, ll;
    Number chi2;
};
using tpc_state = tpc_state_of<float>;

template <typename Number>
constexpr bool is_one_track = sizeof(Number) == sizeof(float);

constexpr float tpc_curvature_unit = -0.000299792458f;
/// Standard deviations of the start of a filter, in units of those of its three points.
constexpr float tpc_start_width = 5.f;
/// Square of the sine of half of the turn in one step: turns up to 60 degrees.
constexpr float tpc_max_turn = 0.25f;

/// The change of s per cm of x for q = 1 at a place: b0 (1 + z2 (z^2 - r^2/2) + z4 (z^4 - 3 z^2 r^2 + 3/8 r^4)).
template <typename Number>
__device__ Number curvature_of_unit(const tpc_filter& filter, const Number& x, const Number& y, const Number& z)
{
    const Number rr = x * x + y * y, zz = z * z;
    const Number field =
        filter.b0 * (1.f + filter.z2 * (zz - 0.5f * rr) + filter.z4 * (zz * zz - 3.f * zz * rr + 0.375f * rr * rr));
    return tpc_curvature_unit * field;
}

/// asin(h) / h for u = h^2 <= tpc_max_turn; relative error below 2e-6. Its power series.
template <typename Number>
__device__ Number arc_over_chord(const Number& u)
{
    Number sum = in_all_lanes<Number>(0.01735276f);
    sum = sum * u + 0.02237216f;
    sum = sum * u + 0.03038194f;
    sum = sum * u + 0.04464286f;
    sum = sum * u + 0.075f;
    sum = sum * u + 0.16666667f;
    return sum * u + 1.f;
}

template <typename Number>
__device__ Number square(const Number& a)
{
    return a * a;
}

/// Whether a track may have this sine of its angle to the x axis.
__device__ bool is_within(const tpc_filter& filter, float s)
{
    return s < filter.max_sin_phi && -s < filter.max_sin_phi;
}

template <typename Number>
__device__ auto is_within(const tpc_filter& filter, const Number& s)
{
    return (s < filter.max_sin_phi) & (-s < filter.max_sin_phi);
}

/// The tracks of `wanted` at another x, with their covariance. Returns those that do not turn too far; nothing changes
/// in the others. mass_square: of all tracks, or of each one.
template <typename Number, typename X, typename Tracks, typename MassSquare>
__device__ Tracks propagate_where(const Tracks& wanted, const tpc_filter& filter, tpc_state_of<Number>& t, const X& x,
                                  const MassSquare& mass_square)
{
    const Number unit = curvature_of_unit(filter, t.x, t.y, t.z);
    const Number dx = x - t.x, k = unit * t.q;
    const Number s0 = t.s, s1 = s0 + k * dx;
    Tracks within = is_within(filter, s1);
    if constexpr (is_one_track<Number>)
        if (!within) return within;
    const Number c0 = square_root(1.f - s0 * s0), c1 = square_root(1.f - s1 * s1);
    const Number sum_c = c0 + c1, tangent = (s0 + s1) / sum_c;
    const Number chord = dx * square_root(1.f + tangent * tangent);
    const Number half_turn = 0.5f * k * chord, turn = half_turn * half_turn;
    const Tracks bounded = turn <= tpc_max_turn;
    if constexpr (is_one_track<Number>) {
        if (!bounded) return bounded;
    } else {
        within &= bounded & wanted;
    }
    const Number arc = chord * arc_over_chord(turn);

    const Number by_s = dx * (1.f + s0 * s1 + c0 * c1) / (c0 * c1 * sum_c);
    const Number by_q = dx * dx * unit * (sum_c + (s0 + s1) * s1 / c1) / (sum_c * sum_c);
    const Number turn_by_q = dx * unit;
    const Number sy = t.sy + by_s * t.ss + by_q * t.qs;
    const Number qy = t.qy + by_s * t.qs + by_q * t.qq;
    const Number qs = t.qs + turn_by_q * t.qq;
    const auto set = [&](Number& of, const Number& to) { of = within ? to : of; };
    set(t.yy, t.yy + by_s * (t.sy + sy) + by_q * (t.qy + qy));
    set(t.sy, sy + turn_by_q * qy);
    set(t.qy, qy);
    set(t.zz, t.zz + arc * (2.f * t.lz + arc * t.ll));
    set(t.lz, t.lz + arc * t.ll);
    set(t.x, in_all_lanes<Number>(x));
    set(t.y, t.y + dx * tangent);
    set(t.z, t.z + t.l * arc);
    set(t.s, s1);

    // Multiple scattering: (13.6 MeV / (p beta))^2 * length / radiation length.
    const Number slope = 1.f + t.l * t.l;
    const Number over_p2 = t.q * t.q / slope;
    const Number length = absolute(arc) * square_root(slope);
    const Number angle2 =
        0.0136f * 0.0136f * length / filter.radiation_length * over_p2 * (1.f + mass_square * over_p2);
    set(t.ss, t.ss + turn_by_q * (t.qs + qs) + angle2 * slope * c1 * c1);
    set(t.qs, qs);
    set(t.ll, t.ll + angle2 * slope * slope);
    set(t.qq, t.qq + angle2 * square(t.q * t.l));
    return within;
}

template <typename Number, typename X, typename Tracks>
__device__ Tracks propagate_where(const Tracks& wanted, const tpc_filter& filter, tpc_state_of<Number>& t, const X& x)
{
    return propagate_where(wanted, filter, t, x, filter.mass_square);
}

/// The track at another x, with its covariance; false, and nothing changed, if it turns too far.
__device__ bool propagate(const tpc_filter& filter, tpc_state& t, float x)
{
    return propagate_where(true, filter, t, x);
}

/// Squares of the resolutions of a cluster on a track.
template <typename Number>
struct tpc_errors_of {
    Number y, z;
};
using tpc_errors = tpc_errors_of<float>;

template <typename Number, typename Pad>
__device__ tpc_errors_of<Number> errors_at(const tpc_filter& filter, const tpc_state_of<Number>& t, const Number& z,
                                           const Pad& pad)
{
    const Number over_c2 = 1.f / (1.f - t.s * t.s);
    const Number drift = z < filter.half_length ? (filter.half_length - z) / pad : Number{};
    const Number tangent2 = pad * over_c2;
    return {filter.y_constant + filter.y_drift * drift + filter.y_angle * t.s * t.s * tangent2,
            filter.z_constant + filter.z_drift * drift + filter.z_angle * t.l * t.l * tangent2};
}

/// chi2 of a cluster.
template <typename Number>
__device__ Number distance2(const tpc_state_of<Number>& t, const tpc_errors_of<Number>& errors, const Number& y,
                            const Number& z)
{
    const Number dy = y - t.y, dz = z - t.z;
    return dy * dy / (errors.y + t.yy) + dz * dz / (errors.z + t.zz);
}

/// Add a cluster to the tracks of `wanted`. Variances are written as products, so that rounding cannot make those of y
/// and z negative.
template <typename Number, typename Tracks>
__device__ void update_where(const Tracks& wanted, tpc_state_of<Number>& t, const tpc_errors_of<Number>& errors,
                             const Number& y, const Number& z)
{
    const Number gain_y = 1.f / (errors.y + t.yy), gain_z = 1.f / (errors.z + t.zz);
    const Number dy = y - t.y, dz = z - t.z;
    const auto set = [&](Number& of, const Number& to) { of = wanted ? to : of; };
    set(t.chi2, t.chi2 + (dy * dy * gain_y + dz * dz * gain_z));
    set(t.y, t.y + t.yy * gain_y * dy);
    set(t.s, t.s + t.sy * gain_y * dy);
    set(t.q, t.q + t.qy * gain_y * dy);
    set(t.z, t.z + t.zz * gain_z * dz);
    set(t.l, t.l + t.lz * gain_z * dz);
    set(t.ss, t.ss - t.sy * gain_y * t.sy);
    set(t.qs, t.qs - t.qy * gain_y * t.sy);
    set(t.qq, t.qq - t.qy * gain_y * t.qy);
    set(t.ll, t.ll - t.lz * gain_z * t.lz);
    const Number left_y = errors.y * gain_y, left_z = errors.z * gain_z;
    set(t.yy, t.yy * left_y);
    set(t.sy, t.sy * left_y);
    set(t.qy, t.qy * left_y);
    set(t.zz, t.zz * left_z);
    set(t.lz, t.lz * left_z);
}

__device__ void update(tpc_state& t, const tpc_errors& errors, float y, float z)
{
    update_where(true, t, errors, y, z);
}

/// A cluster in cm.
template <typename Number>
struct tpc_point_of {
    Number x, y, z;
    Number pad;  // length of its pads
};
using tpc_point = tpc_point_of<float>;

/// The track at point c, or at point a with `at_a`, of the circle through three points in the order of x, without
/// covariance; false for points that lie on no track. Variances are set for a first cluster there, with the errors that
/// it has at the angles of the circle.
template <typename Number>
__device__ auto start_state(const tpc_filter& filter, const tpc_point_of<Number>& a, const tpc_point_of<Number>& b,
                            const tpc_point_of<Number>& c, bool at_a, tpc_state_of<Number>& t)
{
    const Number abx = b.x - a.x, aby = b.y - a.y, acx = c.x - a.x, acy = c.y - a.y, bcx = c.x - b.x, bcy = c.y - b.y;
    const Number ac = square_root(acx * acx + acy * acy);
    const Number product = square_root((abx * abx + aby * aby) * (bcx * bcx + bcy * bcy)) * ac;
    const Number k = 2.f * (abx * acy - aby * acx) / product;
    const Number half = 0.5f * k * ac, turn = half * half;
    auto is_track = turn <= tpc_max_turn;
    if constexpr (is_one_track<Number>)
        if (!is_track) return is_track;
    const Number cosine = square_root(1.f - turn), direction_x = acx / ac, direction_y = acy / ac;
    const tpc_point_of<Number>& at = at_a ? a : c;
    t.x = at.x;
    t.y = at.y;
    t.z = at.z;
    t.s = at_a ? direction_y * cosine - direction_x * half : direction_y * cosine + direction_x * half;
    is_track &= is_within(filter, t.s);
    if constexpr (is_one_track<Number>)
        if (!is_track) return is_track;
    t.l = (c.z - a.z) / (ac * arc_over_chord(turn));
    const Number unit = curvature_of_unit(filter, at.x, at.y, at.z);
    t.q = k / unit;
    const tpc_errors_of<Number> errors = errors_at(filter, t, at.z, at.pad);
    t.yy = errors.y;
    t.zz = errors.z;
    // The filter knows the first cluster only. The others are five times as wide as what three points on this chord
    // measure: wider ones let a steep track turn away with its second cluster, narrower ones count the points twice.
    const Number over_ac2 = tpc_start_width * tpc_start_width / (ac * ac);
    t.ss = 16.f * errors.y * over_ac2 * (1.f - t.s * t.s);
    t.ll = 2.f * errors.z * over_ac2;
    t.qq = 64.f * errors.y * over_ac2 / (ac * ac) / (unit * unit);
    t.sy = t.qy = t.qs = t.lz = t.chi2 = Number{};
    return is_track;
}

/// The filter of a kernel: constants of its parameters, and the geometry.
template <typename Parameters>
__device__ tpc_filter filter_of(const Parameters& p, const float* after_rows)
{
    return {p.y_constant,  p.y_drift,     p.y_angle,          p.z_constant,    p.z_drift,
            p.z_angle,     p.max_sin_phi, p.radiation_length, p.mass * p.mass, after_rows[0],
            after_rows[1], after_rows[2], after_rows[3]};
}

}  // namespace hlt
