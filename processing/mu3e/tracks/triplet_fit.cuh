// The fit of a triplet of hits with multiple scattering at the middle one (N. Berger, A. Kozlinskiy, M. Kiehn, A.
// Schoening, "A new three-dimensional track fit with multiple scattering", Nucl. Instrum. Meth. A 844 (2017) 135,
// arXiv:1606.04990, section 3; D. vom Bruch, DESY-PROC-2014-05, section 3).
//
// The particle moves on two helices of the same radius R = p / (q B) in space, one on either side of the middle hit.
// The scattering angles there, phi in the transverse plane and theta towards the axis, are linear in R around the
// circle through the three hits:
//     phi(R) = phi + eta R,   theta(R) = theta + beta R,
//     chi2(R) = (sin^2 phi(R)^2 + theta(R)^2) / variance,
// so the smallest chi2 has a closed form. Sums of chi2 of several triplets of a track have it too. The paper neglects
// errors of positions; here the variance contains that of directions between the hits. `Lanes` is a float, or a vector
// of floats with a triplet in each lane.
#pragma once

#include "framework/device/lanes.cuh"
#include "framework/device/math.cuh"

namespace hlt {

template <typename Lanes>
struct lane_position {
    Lanes x, y, z;
};

/// scattering: mm, the angle of a particle of R = 1 mm that crosses a layer at normal incidence. hit_error: mm.
struct fit_errors {
    float scattering, hit_error;
};

/// phi, eta, theta, beta as above. turn: twice the area of the triangle of hits in the transverse plane, mm^2; positive
/// if the particle turns anticlockwise. radius: of the transverse circle.
template <typename Lanes>
struct triplet_terms {
    Lanes phi, eta, theta, beta, square_sine, variance, turn, radius;
};

template <typename Lanes>
__device__ __forceinline__ triplet_terms<Lanes> terms_of_triplet(const lane_position<Lanes>& a,
                                                                 const lane_position<Lanes>& b,
                                                                 const lane_position<Lanes>& c,
                                                                 const fit_errors& errors)
{
    const Lanes one = in_all_lanes<Lanes>(1.f), least = in_all_lanes<Lanes>(0.2f);
    const Lanes abx = b.x - a.x, aby = b.y - a.y, bcx = c.x - b.x, bcy = c.y - b.y, acx = c.x - a.x, acy = c.y - a.y;
    const Lanes turn = abx * bcy - aby * bcx, area = absolute(turn);
    // Half of the angle of an arc is the angle at the third hit.
    const Lanes dot_c = acx * bcx + acy * bcy, dot_a = abx * acx + aby * acy;
    const Lanes half1 = atan2_approximate(area, dot_c), half2 = atan2_approximate(area, dot_a);
    const Lanes square1 = abx * abx + aby * aby, square2 = bcx * bcx + bcy * bcy;
    const Lanes chord1 = square_root(square1), chord2 = square_root(square2);
    const Lanes chords = chord1 * chord2, per_area = one / area;
    const Lanes radius = chords * square_root(acx * acx + acy * acy) * per_area * 0.5f;
    const Lanes arc1 = radius * half1 * 2.f, arc2 = radius * half2 * 2.f, z1 = b.z - a.z, z2 = c.z - b.z;
    const Lanes arcs1 = arc1 * arc1, arcs2 = arc2 * arc2, zs1 = z1 * z1, zs2 = z2 * z2;
    const Lanes index1 = (arcs1 + zs1) / (arcs1 * half1 * dot_c * per_area + zs1);
    const Lanes index2 = (arcs2 + zs2) / (arcs2 * half2 * dot_a * per_area + zs2);
    const Lanes per_radius1 = half1 * 2.f / square_root(arcs1 + zs1);
    const Lanes per_radius2 = half2 * 2.f / square_root(arcs2 + zs2);
    const Lanes slope1 = (one - index1) * z1 / arc1, slope2 = (one - index2) * z2 / arc2;
    const Lanes arc = arc1 + arc2, z = z1 + z2, length = arc * arc + z * z;
    triplet_terms<Lanes> found;
    found.turn = turn;
    found.radius = radius;
    found.square_sine = arc * arc / length;
    found.eta = half1 * index1 * per_radius1 + half2 * index2 * per_radius2;
    found.phi = -(half1 * index1 + half2 * index2);
    found.beta = slope2 * per_radius2 - slope1 * per_radius1;
    found.theta = atan2_approximate(arc2 * z1 - z2 * arc1, z1 * z2 + arc1 * arc2) - (slope2 - slope1);
    // The layer is thicker for a particle that crosses it at an angle. Its direction is that of the first chord, turned
    // by half of the first arc. The mean of both chords is another one if the second arc is long.
    const Lanes along_x = abx * dot_c - aby * turn, along_y = aby * dot_c + abx * turn;
    const Lanes radial = absolute(along_x * b.x + along_y * b.y) /
                         square_root((along_x * along_x + along_y * along_y) * (b.x * b.x + b.y * b.y));
    const Lanes normal = radial * square_root(found.square_sine);
    const Lanes angle = (half1 + half2) * 2.f;
    const Lanes per_chord1 = one / chord1, per_chord2 = one / chord2, per_chord = per_chord1 + per_chord2;
    found.variance =
        errors.scattering * errors.scattering * angle * angle / (length * (normal < least ? least : normal)) +
        errors.hit_error * errors.hit_error *
            (per_chord1 * per_chord1 + per_chord2 * per_chord2 + per_chord * per_chord);
    return found;
}

/// Sums over triplets that give the radius in space with the smallest chi2.
template <typename Lanes>
struct radius_sums {
    Lanes square, linear;
};

template <typename Lanes>
__device__ __forceinline__ radius_sums<Lanes> sums_of(const triplet_terms<Lanes>& of)
{
    return {(of.eta * of.eta * of.square_sine + of.beta * of.beta) / of.variance,
            (of.eta * of.phi * of.square_sine + of.beta * of.theta) / of.variance};
}

template <typename Lanes>
__device__ __forceinline__ Lanes chi2_at(const triplet_terms<Lanes>& of, const Lanes& radius)
{
    const Lanes phi = of.phi + of.eta * radius, theta = of.theta + of.beta * radius;
    return (phi * phi * of.square_sine + theta * theta) / of.variance;
}

/// Radius in space in mm, and chi2. Not finite for hits on a line, so no comparison with a limit holds.
template <typename Lanes>
struct triplet_result {
    Lanes radius, chi2;
};

template <typename Lanes>
__device__ __forceinline__ triplet_result<Lanes> fit_triplet(const triplet_terms<Lanes>& of)
{
    const radius_sums<Lanes> sums = sums_of(of);
    const Lanes radius = -sums.linear / sums.square;
    return {radius, chi2_at(of, radius)};
}

}  // namespace hlt
