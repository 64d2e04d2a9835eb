// Pairs of displaced tracks of opposite charge, and the place where they are closest.
//
// Circles are kept as k / 2 (X^2 + Y^2) - m X + e = 0: no number is large for a straight track. The mean of two of
// them, weighted by the curvature of the other one, has no square: it is the line through both crossings.
#pragma once

#include "alice/tpc/candidates/generated/tpc_candidate_types.h"
#include "alice/tpc/merging/segments/segment.cuh"

namespace hlt {

/// Limits of candidates (v0_constants.py).
struct tpc_v0_limits {
    float max_dca, min_radius, max_radius, max_ahead, min_pointing, min_larger_significance;
    float kaon_window, lambda_window;
};

template <typename Parameters>
__device__ tpc_v0_limits v0_limits_of(const Parameters& p)
{
    return {p.max_dca,     p.min_radius,   p.max_radius, p.max_ahead, p.min_pointing, p.min_larger_significance,
            p.kaon_window, p.lambda_window};
}

/// A track at a place of its circle: direction, z, and cm of the way from its innermost cluster, backwards negative. A
/// `Number` is a float or, for a track in each lane, a vector of floats.
template <typename Number>
struct tpc_v0_step_of {
    Number along_x, along_y, z, way;
    decltype(Number{} < Number{}) is_reached;
};
using tpc_v0_step = tpc_v0_step_of<float>;

/// is_reached: the track turns by 60 degrees at most on the way.
template <typename Number, typename Track>
__device__ tpc_v0_step_of<Number> v0_step(const Track& track, const Number& x, const Number& y)
{
    const Number nx = track.mx - track.k * x, ny = track.my - track.k * y;
    const Number size = square_root(nx * nx + ny * ny);
    const Number dx = x - track.x, dy = y - track.y;
    const Number chord = square_root(dx * dx + dy * dy), half_turn = square(0.5f * track.k * chord);
    const decltype(Number{} < Number{}) is_reached = (size > 0.f) & (half_turn <= tpc_max_turn);
    const Number arc = is_reached ? chord * arc_over_chord(half_turn) : Number{};
    const auto start_x = track.my - track.k * track.y, start_y = track.k * track.x - track.mx;
    const Number way = dx * start_x + dy * start_y < 0.f ? -arc : arc;
    return {ny / size, -nx / size, track.z + track.slope * way, way, is_reached};
}

/// Both tracks at a place of the transverse plane.
struct tpc_v0_place {
    float x, y, apart;
    tpc_v0_step a, b;

    __device__ float dz() const
    {
        const float d = a.z - b.z;
        return d < 0.f ? -d : d;
    }
};

__device__ bool is_allowed(const tpc_v0_limits& limits, const tpc_v0_place& at)
{
    return at.a.is_reached && at.b.is_reached && at.a.way <= limits.max_ahead && at.b.way <= limits.max_ahead;
}

/// Where two tracks of opposite charge are closest: the crossing of their circles with the smaller distance in z, the
/// first one of equal ones; a place between circles that do not cross. False if neither is allowed.
__device__ bool closest_place(const tpc_v0_limits& limits, const tpc_v0_track& a, const tpc_v0_track& b,
                              tpc_v0_place& found)
{
    const float ka = a.k < 0.f ? -a.k : a.k, kb = b.k < 0.f ? -b.k : b.k;
    const float of_a = kb / (ka + kb), of_b = ka / (ka + kb);
    const float gx = of_a * a.mx + of_b * b.mx, gy = of_a * a.my + of_b * b.my, g2 = gx * gx + gy * gy;
    // Tracks in opposite directions: the line through the crossings is not defined.
    if (!(g2 > 1e-6f)) return false;
    const float foot = (of_a * a.e + of_b * b.e) / g2, inverse = 1.f / square_root(g2);
    const float x0 = gx * foot, y0 = gy * foot, ux = -gy * inverse, uy = gx * inverse;
    const float square_term = 0.5f * a.k, line_term = -(a.mx * ux + a.my * uy);
    const float constant = square_term * (x0 * x0 + y0 * y0) - (a.mx * x0 + a.my * y0) + a.e;
    const float discriminant = line_term * line_term - 4.f * square_term * constant;
    float places[2], apart = 0.f;
    uint32_t n = 2;
    if (discriminant >= 0.f) {
        const float root = square_root(discriminant);
        const float q = -0.5f * (line_term < 0.f ? line_term - root : line_term + root);
        places[0] = q < 0.f || q > 0.f ? constant / q : 0.f;
        places[1] = q / square_term;
    } else {
        n = 1;
        places[0] = -0.5f * line_term / square_term;
    }
    bool is_found = false;
    for (uint32_t i = 0; i < n; ++i) {
        const float x = x0 + places[i] * ux, y = y0 + places[i] * uy;
        tpc_direction of_track{x, y}, of_other{x, y};
        if (n == 1u) {
            const float ax = a.mx - a.k * x, ay = a.my - a.k * y, bx = b.mx - b.k * x, by = b.my - b.k * y;
            // The curvatures have opposite signs, so the centres are on both sides if the normals agree.
            if (!(ax * bx + ay * by > 0.f)) return false;
            const float sa = square_root(ax * ax + ay * ay), sb = square_root(bx * bx + by * by);
            const float da = (sa - 1.f) / a.k, db = (sb - 1.f) / b.k;
            apart = (da < 0.f ? -da : da) + (db < 0.f ? -db : db);
            of_track = {x + ax / sa * da, y + ay / sa * da};
            of_other = {x + bx / sb * db, y + by / sb * db};
        }
        const float r2 = x * x + y * y;
        if (!(r2 >= square(limits.min_radius) && r2 <= square(limits.max_radius))) continue;
        const tpc_v0_place at{x, y, apart, v0_step(a, of_track.x, of_track.y), v0_step(b, of_other.x, of_other.y)};
        if (!is_allowed(limits, at) || (is_found && !(at.dz() < found.dz()))) continue;
        found = at;
        is_found = true;
    }
    return is_found;
}

__device__ bool is_near(float value, float of, float window) { return value >= of - window && value <= of + window; }

/// Whether z of two tracks can agree at one radius up to max_radius, as if both flew along it; most pairs do not pass.
/// Each way may be 5 cm longer.
template <typename Number>
__device__ auto may_meet(const tpc_v0_limits& limits, const tpc_v0_track& a, const Number& slope, const Number& z_beam)
{
    constexpr float longer_way = 5.f;
    const Number slopes = (a.slope < 0.f ? -a.slope : a.slope) + absolute(slope);
    const Number reach = limits.max_dca + longer_way * slopes;
    const Number near = a.z_beam - z_beam, far = near + limits.max_radius * (a.slope - slope);
    return (((near > reach) & (far > reach)) | ((near < -reach) & (far < -reach))) == 0;
}

/// The candidate of two tracks; false if it does not pass the limits.
__device__ bool v0_of(const tpc_v0_limits& limits, const tpc_v0_track& a, const tpc_v0_track& b, uint32_t positive,
                      uint32_t negative, tpc_v0& found)
{
    if (!(max_of(a.significance, b.significance) >= limits.min_larger_significance) ||
        !may_meet(limits, a, b.slope, b.z_beam))
        return false;
    tpc_v0_place at;
    if (!closest_place(limits, a, b, at)) return false;
    const float dca2 = square(at.apart) + square(at.dz());
    if (!(dca2 <= square(limits.max_dca))) return false;
    const float ax = a.pt * at.a.along_x, ay = a.pt * at.a.along_y, az = a.pt * a.slope;
    const float bx = b.pt * at.b.along_x, by = b.pt * at.b.along_y, bz = b.pt * b.slope;
    const float px = ax + bx, py = ay + by, pt = square_root(px * px + py * py);
    const float pointing = (px * at.x + py * at.y) / (pt * square_root(at.x * at.x + at.y * at.y));
    if (!(pointing >= limits.min_pointing)) return false;
    const float a2 = ax * ax + ay * ay + az * az, b2 = bx * bx + by * by + bz * bz;
    const float product = ax * bx + ay * by + az * bz;
    const auto mass = [&](float ma, float mb) {
        const float energies = square_root(a2 + ma * ma) * square_root(b2 + mb * mb);
        return square_root(ma * ma + mb * mb + 2.f * (energies - product));
    };
    found = {at.x,
             at.y,
             0.5f * (at.a.z + at.b.z),
             mass(tpc_pion_mass, tpc_pion_mass),
             mass(tpc_proton_mass, tpc_pion_mass),
             mass(tpc_pion_mass, tpc_proton_mass),
             pt,
             (az + bz) / pt,
             square_root(dca2),
             pointing,
             positive,
             negative};
    return is_near(found.mass_k0s, tpc_kaon_mass, limits.kaon_window) ||
           is_near(found.mass_lambda, tpc_lambda_mass, limits.lambda_window) ||
           is_near(found.mass_antilambda, tpc_lambda_mass, limits.lambda_window);
}

/// Displaced tracks of an event.
struct tpc_v0_tracks {
    const tpc_v0_track* tracks;
    const uint16_t* bins;
    const uint32_t *begins, *partners;

    __device__ bool is_positive(uint32_t i) const
    {
        return bins[i] != tpc_v0_no_bin && (bins[i] & tpc_v0_positive) != 0u;
    }
    /// Calls visit(first, last) for places in `partners` of the bins around that of a track. The azimuth is periodic.
    template <typename Visit>
    __device__ void for_near_bins(uint32_t i, const Visit& visit) const
    {
        const uint32_t bin = bins[i] - tpc_v0_positive;
        const uint32_t line = bin / tpc_v0_phi_bins, column = bin % tpc_v0_phi_bins;
        const uint32_t last = min_of(line + tpc_v0_z_reach, tpc_v0_z_bins - 1u);
        for (uint32_t of = line > tpc_v0_z_reach ? line - tpc_v0_z_reach : 0u; of <= last; ++of)
            for (uint32_t k = 0; k <= 2u * tpc_v0_phi_reach; ++k) {
                const uint32_t at = (column + tpc_v0_phi_bins - tpc_v0_phi_reach + k) % tpc_v0_phi_bins;
                const uint32_t* const of_bin = begins + of * tpc_v0_phi_bins + at;
                visit(of_bin[0], of_bin[1]);
            }
    }
    __device__ uint32_t n_partners(uint32_t i) const
    {
        uint32_t n = 0;
        for_near_bins(i, [&](uint32_t first, uint32_t last) { n += last - first; });
        return n;
    }
    /// Calls take(candidate) if two tracks make one.
    template <typename Take>
    __device__ void take_pair(const tpc_v0_limits& limits, uint32_t i, uint32_t partner, const Take& take) const
    {
        tpc_v0 found;
        if (v0_of(limits, tracks[i], tracks[partner], i, partner, found)) take(found);
    }
    /// Calls take(candidate) for each candidate of a track of positive charge. The order is not fixed.
    template <typename Take>
    __device__ void for_candidates(const tpc_v0_limits& limits, uint32_t i, const Take& take) const
    {
        for_near_bins(i, [&](uint32_t first, uint32_t last) {
            for (uint32_t k = first; k < last; ++k) take_pair(limits, i, partners[k], take);
        });
    }
};

template <typename Parameters>
__device__ tpc_v0_tracks v0_tracks_of(const Parameters& p, uint32_t event)
{
    const uint32_t first = p.tpc_merged_tracks.first(event);
    return {p.tpc_merged_tracks.v0_track + first, p.tpc_merged_tracks.v0_bin + first,
            p.tpc_merged_tracks.v0_bin_begins + event * (tpc_v0_bins + 1u), p.tpc_merged_tracks.v0_partners + first};
}

}  // namespace hlt
