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

struct tpc_state {
    float x, y, z, s, l, q;
    float yy, sy, ss, qy, qs, qq, zz, lz, ll;
    float chi2;
};

constexpr float tpc_curvature_unit = -0.000299792458f;
/// Standard deviations of the start of a filter, in units of those of its three points.
constexpr float tpc_start_width = 5.f;
/// Square of the sine of half of the turn in one step: turns up to 60 degrees.
constexpr float tpc_max_turn = 0.25f;

/// The change of s per cm of x for q = 1 at a place: b0 (1 + z2 (z^2 - r^2/2) + z4 (z^4 - 3 z^2 r^2 + 3/8 r^4)).
__device__ float curvature_of_unit(const tpc_filter& filter, float x, float y, float z)
{
    const float rr = x * x + y * y, zz = z * z;
    const float field =
        filter.b0 * (1.f + filter.z2 * (zz - 0.5f * rr) + filter.z4 * (zz * zz - 3.f * zz * rr + 0.375f * rr * rr));
    return tpc_curvature_unit * field;
}

/// asin(h) / h for u = h^2 <= tpc_max_turn; relative error below 2e-6. Its power series.
__device__ float arc_over_chord(float u)
{
    float sum = 0.01735276f;
    sum = sum * u + 0.02237216f;
    sum = sum * u + 0.03038194f;
    sum = sum * u + 0.04464286f;
    sum = sum * u + 0.075f;
    sum = sum * u + 0.16666667f;
    return sum * u + 1.f;
}

__device__ float square(float a) { return a * a; }

/// Whether a track may have this sine of its angle to the x axis.
__device__ bool is_within(const tpc_filter& filter, float s)
{
    return s < filter.max_sin_phi && -s < filter.max_sin_phi;
}

/// The track at another x, with its covariance; false, and nothing changed, if it turns too far.
__device__ bool propagate(const tpc_filter& filter, tpc_state& t, float x)
{
    const float unit = curvature_of_unit(filter, t.x, t.y, t.z);
    const float dx = x - t.x, k = unit * t.q;
    const float s0 = t.s, s1 = s0 + k * dx;
    if (!is_within(filter, s1)) return false;
    const float c0 = square_root(1.f - s0 * s0), c1 = square_root(1.f - s1 * s1);
    const float sum_c = c0 + c1, tangent = (s0 + s1) / sum_c;
    const float chord = dx * square_root(1.f + tangent * tangent);
    const float half_turn = 0.5f * k * chord, turn = half_turn * half_turn;
    if (!(turn <= tpc_max_turn)) return false;
    const float arc = chord * arc_over_chord(turn);

    const float by_s = dx * (1.f + s0 * s1 + c0 * c1) / (c0 * c1 * sum_c);
    const float by_q = dx * dx * unit * (sum_c + (s0 + s1) * s1 / c1) / (sum_c * sum_c);
    const float turn_by_q = dx * unit;
    const float sy = t.sy + by_s * t.ss + by_q * t.qs;
    const float qy = t.qy + by_s * t.qs + by_q * t.qq;
    const float qs = t.qs + turn_by_q * t.qq;
    t.yy = t.yy + by_s * (t.sy + sy) + by_q * (t.qy + qy);
    t.sy = sy + turn_by_q * qy;
    t.ss = t.ss + turn_by_q * (t.qs + qs);
    t.qy = qy;
    t.qs = qs;
    t.zz = t.zz + arc * (2.f * t.lz + arc * t.ll);
    t.lz = t.lz + arc * t.ll;

    t.x = x;
    t.y = t.y + dx * tangent;
    t.z = t.z + t.l * arc;
    t.s = s1;

    // Multiple scattering: (13.6 MeV / (p beta))^2 * length / radiation length, for a pion.
    const float slope = 1.f + t.l * t.l;
    const float over_p2 = t.q * t.q / slope;
    const float length = (arc < 0.f ? -arc : arc) * square_root(slope);
    const float angle2 =
        0.0136f * 0.0136f * length / filter.radiation_length * over_p2 * (1.f + filter.mass_square * over_p2);
    t.ss += angle2 * slope * c1 * c1;
    t.ll += angle2 * slope * slope;
    t.qq += angle2 * square(t.q * t.l);
    return true;
}

/// Squares of the resolutions of a cluster on a track.
struct tpc_errors {
    float y, z;
};

__device__ tpc_errors errors_at(const tpc_filter& filter, const tpc_state& t, float z, float pad)
{
    const float over_c2 = 1.f / (1.f - t.s * t.s);
    const float drift = z < filter.half_length ? (filter.half_length - z) / pad : 0.f;
    const float tangent2 = pad * over_c2;
    return {filter.y_constant + filter.y_drift * drift + filter.y_angle * t.s * t.s * tangent2,
            filter.z_constant + filter.z_drift * drift + filter.z_angle * t.l * t.l * tangent2};
}

/// chi2 of a cluster.
__device__ float distance2(const tpc_state& t, const tpc_errors& errors, float y, float z)
{
    const float dy = y - t.y, dz = z - t.z;
    return dy * dy / (errors.y + t.yy) + dz * dz / (errors.z + t.zz);
}

/// Add a cluster. Variances are written as products, so that rounding cannot make those of y and z negative.
__device__ void update(tpc_state& t, const tpc_errors& errors, float y, float z)
{
    const float gain_y = 1.f / (errors.y + t.yy), gain_z = 1.f / (errors.z + t.zz);
    const float dy = y - t.y, dz = z - t.z;
    t.chi2 += dy * dy * gain_y + dz * dz * gain_z;
    t.y += t.yy * gain_y * dy;
    t.s += t.sy * gain_y * dy;
    t.q += t.qy * gain_y * dy;
    t.z += t.zz * gain_z * dz;
    t.l += t.lz * gain_z * dz;
    t.ss -= t.sy * gain_y * t.sy;
    t.qs -= t.qy * gain_y * t.sy;
    t.qq -= t.qy * gain_y * t.qy;
    t.ll -= t.lz * gain_z * t.lz;
    const float left_y = errors.y * gain_y, left_z = errors.z * gain_z;
    t.yy *= left_y;
    t.sy *= left_y;
    t.qy *= left_y;
    t.zz *= left_z;
    t.lz *= left_z;
}

/// A cluster in cm.
struct tpc_point {
    float x, y, z;
    float pad;  // length of its pads
};

/// The track at point c, or at point a with `at_a`, of the circle through three points in the order of x, without
/// covariance; false for points that lie on no track. Variances are set for a first cluster there, with the errors that
/// it has at the angles of the circle.
__device__ bool start_state(const tpc_filter& filter, const tpc_point& a, const tpc_point& b, const tpc_point& c,
                            bool at_a, tpc_state& t)
{
    const float abx = b.x - a.x, aby = b.y - a.y, acx = c.x - a.x, acy = c.y - a.y, bcx = c.x - b.x, bcy = c.y - b.y;
    const float ac = square_root(acx * acx + acy * acy);
    const float product = square_root((abx * abx + aby * aby) * (bcx * bcx + bcy * bcy)) * ac;
    const float k = 2.f * (abx * acy - aby * acx) / product;
    const float half = 0.5f * k * ac, turn = half * half;
    if (!(turn <= tpc_max_turn)) return false;
    const float cosine = square_root(1.f - turn), direction_x = acx / ac, direction_y = acy / ac;
    const tpc_point& at = at_a ? a : c;
    t.x = at.x;
    t.y = at.y;
    t.z = at.z;
    t.s = at_a ? direction_y * cosine - direction_x * half : direction_y * cosine + direction_x * half;
    if (!is_within(filter, t.s)) return false;
    t.l = (c.z - a.z) / (ac * arc_over_chord(turn));
    const float unit = curvature_of_unit(filter, at.x, at.y, at.z);
    t.q = k / unit;
    const tpc_errors errors = errors_at(filter, t, at.z, at.pad);
    t.yy = errors.y;
    t.zz = errors.z;
    // The filter knows the first cluster only. The others are five times as wide as what three points on this chord
    // measure: wider ones let a steep track turn away with its second cluster, narrower ones count the points twice.
    const float over_ac2 = tpc_start_width * tpc_start_width / (ac * ac);
    t.ss = 16.f * errors.y * over_ac2 * (1.f - t.s * t.s);
    t.ll = 2.f * errors.z * over_ac2;
    t.qq = 64.f * errors.y * over_ac2 / (ac * ac) / (unit * unit);
    t.sy = t.qy = t.qs = t.lz = 0.f;
    t.chi2 = 0.f;
    return true;
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
