// Tracks as helices near the target: where two of them cross, and the vertex of three.
//
// The vertex fit is a least-squares fit of straight lines: near the target, a track is its tangent at the point of its
// helix that is nearest to the vertex. Its error across grows with the path from the first hit, where it scatters (S.
// Schenk, "A vertex fit for low momentum particles in a solenoidal magnetic field with multiple scattering", diploma
// thesis, Heidelberg 2013, has the same model). Muons stop in the target, so its surface is one more measurement. Four
// steps move the point, the tangents and the plane of the surface.
#pragma once

#include "framework/device/math.cuh"
#include "mu3e/tracks/generated/track_types.h"
#include "mu3e/vertices/generated/vertex_types.h"

namespace hlt {

/// Centre and radius of the transverse circle; slope: dz over arc; turn: 1 anticlockwise, -1 clockwise.
struct helix {
    float x, y, z, centre_x, centre_y, radius, slope, turn, momentum;
};

__device__ __forceinline__ helix helix_of(const mu3e_track& track, float mev_per_mm)
{
    const float transverse = sqrtf(track.px * track.px + track.py * track.py);
    const float radius = transverse / mev_per_mm, turn = track.charge > 0 ? -1.f : 1.f;
    const float tx = track.px / transverse, ty = track.py / transverse;
    return {track.x,
            track.y,
            track.z,
            track.x - turn * radius * ty,
            track.y + turn * radius * tx,
            radius,
            track.pz / transverse,
            turn,
            track.momentum};
}

/// Arc from the first hit to the point of the circle in the direction of (x, y), mm; negative before the first hit.
__device__ __forceinline__ float arc_to(const helix& of, float x, float y)
{
    const float wx = of.x - of.centre_x, wy = of.y - of.centre_y, vx = x - of.centre_x, vy = y - of.centre_y;
    return of.turn * of.radius * atan2_approximate(wx * vy - wy * vx, wx * vx + wy * vy);
}

/// Distance of (x, y) from the circle, mm.
__device__ __forceinline__ float distance_to_circle(const helix& of, float x, float y)
{
    const float vx = x - of.centre_x, vy = y - of.centre_y, found = sqrtf(vx * vx + vy * vy) - of.radius;
    return found < 0.f ? -found : found;
}

/// Momentum along z, the same everywhere on the helix; MeV/c.
__device__ __forceinline__ float momentum_along_z(const helix& of)
{
    const float sine = 1.f / sqrtf(1.f + of.slope * of.slope);
    return of.momentum * (of.slope * sine);
}

struct crossing_points {
    float x[2], y[2];
    uint32_t n;
};

/// Where two circles cross; for circles that miss each other by at most max_gap, the point between them.
__device__ crossing_points cross_circles(const helix& a, const helix& b, float max_gap)
{
    crossing_points found{{0.f, 0.f}, {0.f, 0.f}, 0};
    const float dx = b.centre_x - a.centre_x, dy = b.centre_y - a.centre_y, square = dx * dx + dy * dy;
    const float distance = sqrtf(square), difference = a.radius - b.radius, sum = a.radius + b.radius;
    if (!(distance > 1e-3f)) return found;
    float along, gap;
    if (distance > sum) {
        gap = distance - sum;
        along = a.radius + 0.5f * gap;
    } else if (difference > distance) {
        gap = difference - distance;
        along = a.radius - 0.5f * gap;
    } else if (-difference > distance) {
        gap = -difference - distance;
        along = -(a.radius + 0.5f * gap);
    } else {
        gap = 0.f;
        along = (difference * sum + square) / (2.f * distance);
    }
    if (gap > max_gap) return found;
    const float ux = dx / distance, uy = dy / distance;
    const float squared = (a.radius - along) * (a.radius + along);
    const float across = gap > 0.f || !(squared > 0.f) ? 0.f : sqrtf(squared);
    found.n = across > 0.f ? 2u : 1u;
    for (uint32_t s = 0; s < found.n; ++s) {
        const float side = s == 0u ? across : -across;
        found.x[s] = a.centre_x + along * ux - side * uy;
        found.y[s] = a.centre_y + along * uy + side * ux;
    }
    return found;
}

/// Errors of a track across its direction. angle: of the direction at the first hit from the hits alone; hit: mm.
struct vertex_errors {
    float scattering, mev_per_mm, angle, hit;
};

/// A track at the point of its helix nearest to a vertex: point from the vertex, unit vector, and weight.
struct line_at_vertex {
    float x, y, z, ux, uy, uz, weight;
};

__device__ __forceinline__ line_at_vertex line_at(const helix& of, float x, float y, float z,
                                                  const vertex_errors& errors)
{
    const float vx = x - of.centre_x, vy = y - of.centre_y, per_size = 1.f / sqrtf(vx * vx + vy * vy);
    const float nx = vx * per_size, ny = vy * per_size, arc = arc_to(of, x, y);
    const float sine = 1.f / sqrtf(1.f + of.slope * of.slope), path = arc / sine;
    const float bend = errors.scattering * errors.mev_per_mm / of.momentum;
    const float angle = bend * bend / sine + errors.angle * errors.angle;
    return {of.centre_x + of.radius * nx - x,
            of.centre_y + of.radius * ny - y,
            of.z + of.slope * arc - z,
            -of.turn * ny * sine,
            of.turn * nx * sine,
            of.slope * sine,
            1.f / (angle * path * path + errors.hit * errors.hit)};
}

/// Square of the distance of a line from the vertex.
__device__ __forceinline__ float square_distance(const line_at_vertex& of)
{
    const float along = of.x * of.ux + of.y * of.uy + of.z * of.uz;
    return of.x * of.x + of.y * of.y + of.z * of.z - along * along;
}

/// The target, a hollow double cone: radius in the middle, mm; radius over half of the length; error of its surface,
/// mm.
struct target_cone {
    float radius, slope, error;
};

/// Normal of the nearer cone of the target at a point, and the distance of the point from it.
struct target_plane {
    float nx, ny, nz, away, weight;
};

__device__ __forceinline__ target_plane plane_at(const target_cone& target, float x, float y, float z)
{
    const float radial = max_of(sqrtf(x * x + y * y), 1e-3f), height = z < 0.f ? -z : z;
    const float cosine = 1.f / sqrtf(1.f + target.slope * target.slope);
    const float along = z < 0.f ? -target.slope : target.slope;
    return {x / radial * cosine, y / radial * cosine, along * cosine,
            (radial - target.radius + target.slope * height) * cosine, 1.f / (target.error * target.error)};
}

struct fitted_vertex {
    float x, y, z, chi2, distance, px, py, pz;
};

/// The vertex of three tracks on the target from a first point.
__device__ fitted_vertex fit_vertex(const helix* tracks, float x, float y, float z, const vertex_errors& errors,
                                    const target_cone& target)
{
    line_at_vertex lines[3];
    constexpr uint32_t steps = 4;
    for (uint32_t step = 0; step < steps; ++step) {
        const target_plane plane = plane_at(target, x, y, z);
        float xx = plane.weight * plane.nx * plane.nx, xy = plane.weight * plane.nx * plane.ny;
        float xz = plane.weight * plane.nx * plane.nz, yy = plane.weight * plane.ny * plane.ny;
        float yz = plane.weight * plane.ny * plane.nz, zz = plane.weight * plane.nz * plane.nz;
        const float pull = -plane.weight * plane.away;
        float bx = pull * plane.nx, by = pull * plane.ny, bz = pull * plane.nz;
        for (uint32_t t = 0; t < 3u; ++t) {
            const line_at_vertex of = line_at(tracks[t], x, y, z, errors);
            const float along = of.x * of.ux + of.y * of.uy + of.z * of.uz;
            xx += of.weight * (1.f - of.ux * of.ux);
            xy -= of.weight * of.ux * of.uy;
            xz -= of.weight * of.ux * of.uz;
            yy += of.weight * (1.f - of.uy * of.uy);
            yz -= of.weight * of.uy * of.uz;
            zz += of.weight * (1.f - of.uz * of.uz);
            bx += of.weight * (of.x - along * of.ux);
            by += of.weight * (of.y - along * of.uy);
            bz += of.weight * (of.z - along * of.uz);
        }
        const float cxx = yy * zz - yz * yz, cxy = xz * yz - xy * zz, cxz = xy * yz - xz * yy;
        const float cyy = xx * zz - xz * xz, cyz = xy * xz - xx * yz, czz = xx * yy - xy * xy;
        const float per_determinant = 1.f / (xx * cxx + xy * cxy + xz * cxz);
        x += (cxx * bx + cxy * by + cxz * bz) * per_determinant;
        y += (cxy * bx + cyy * by + cyz * bz) * per_determinant;
        z += (cxz * bx + cyz * by + czz * bz) * per_determinant;
    }
    const target_plane plane = plane_at(target, x, y, z);
    fitted_vertex found{x, y, z, plane.away * plane.away * plane.weight, 0.f, 0.f, 0.f, 0.f};
    for (uint32_t t = 0; t < 3u; ++t) {
        lines[t] = line_at(tracks[t], x, y, z, errors);
        const float square = square_distance(lines[t]);
        found.chi2 += square * lines[t].weight;
        found.distance = max_of(found.distance, square);
        found.px += tracks[t].momentum * lines[t].ux;
        found.py += tracks[t].momentum * lines[t].uy;
        found.pz += tracks[t].momentum * lines[t].uz;
    }
    found.distance = found.distance > 0.f ? sqrtf(found.distance) : 0.f;
    return found;
}

}  // namespace hlt
