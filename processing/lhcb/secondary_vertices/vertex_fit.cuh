// The vertex of two straight tracks with errors, in closed form (docs/physics/secondary-vertices.md).
//
// All sums over the two tracks use the differences of their positions and slopes. Subtractions of large, nearly equal
// numbers would lose the digits of single precision for nearly parallel tracks.
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/tracks/kalman/velo_bend.cuh"

namespace hlt {

/// A long track at the beam line: mm, slopes, 1/MeV; covariances of (x, y, tx, ty) = (0, 1, 2, 3); x and y are
/// independent.
struct vertex_track {
    float x, y, z, tx, ty, qop;
    float c00, c20, c22, c11, c31, c33;
};

/// The track of a place, from the columns of long tracks.
template <typename LongTracks>
__device__ vertex_track vertex_track_of(const LongTracks& tracks, uint32_t place)
{
    return {tracks.beam_x[place],   tracks.beam_y[place],   tracks.beam_z[place],   tracks.beam_tx[place],
            tracks.beam_ty[place],  tracks.beam_qop[place], tracks.beam_c00[place], tracks.beam_c20[place],
            tracks.beam_c22[place], tracks.beam_c11[place], tracks.beam_c31[place], tracks.beam_c33[place]};
}

/// A vertex: mm; its covariance is diag(var_x, var_y, 0) + var_z g g^T with g = (gx, gy, 1). The tracks have the slopes
/// tx there; ty does not change.
struct vertex_of_two {
    float x, y, z;
    float txa, txb;
    float gx, gy;
    float var_x, var_y, var_z;
    float chi2;  // one degree of freedom
    float doca;  // mm
};

/// z at which the lines are closest to each other (mean of the two points), and their distance there. Parallel lines
/// give NaN or infinite values. A line has x, y, z of a point in mm and the slopes tx, ty.
template <typename Line>
__device__ void closest_approach(const Line& a, const Line& b, float& z, float& distance)
{
    const float dtx = a.tx - b.tx, dty = a.ty - b.ty;
    const float cx = dty, cy = -dtx, cz = a.ty * dtx - a.tx * dty;  // product of the directions
    const float c2 = cx * cx + cy * cy + cz * cz;
    const float dx = (b.x - b.z * b.tx) - (a.x - a.z * a.tx), dy = (b.y - b.z * b.ty) - (a.y - a.z * a.ty);
    const float of_a = dy * cx - dx * cy + (dx * b.ty - dy * b.tx) * cz;
    const float of_b = dy * cx - dx * cy + (dx * a.ty - dy * a.tx) * cz;
    const float w = dx * cx + dy * cy;
    z = 0.5f * (of_a + of_b) / c2;
    distance = (w < 0.f ? -w : w) / sqrtf(c2);
}

/// One Newton step from the point of closest approach of the tangents, on the tracks with their bend there. It is exact
/// except for the change of the errors over the step.
__device__ vertex_of_two fit_two_tracks(const velo_field& field, const vertex_track& a, const vertex_track& b)
{
    vertex_of_two vertex;
    float z;
    closest_approach(a, b, z, vertex.doca);
    const float dza = z - a.z, dzb = z - b.z;
    const float vxa = a.c00 + dza * (2.f * a.c20 + dza * a.c22), vya = a.c11 + dza * (2.f * a.c31 + dza * a.c33);
    const float vxb = b.c00 + dzb * (2.f * b.c20 + dzb * b.c22), vyb = b.c11 + dzb * (2.f * b.c31 + dzb * b.c33);
    const float hx = 1.f / (vxa + vxb), hy = 1.f / (vya + vyb);
    const float xa = a.x + dza * a.tx + bend_of_position(field, a.qop, a.z, dza), ya = a.y + dza * a.ty;
    const float xb = b.x + dzb * b.tx + bend_of_position(field, b.qop, b.z, dzb), yb = b.y + dzb * b.ty;
    vertex.txa = a.tx + bend_of_slope(field, a.qop, a.z, dza);
    vertex.txb = b.tx + bend_of_slope(field, b.qop, b.z, dzb);
    const float dx = xa - xb, dy = ya - yb;
    const float dtx = vertex.txa - vertex.txb, dty = a.ty - b.ty;

    vertex.var_z = 1.f / (hx * dtx * dtx + hy * dty * dty);
    const float dz = -vertex.var_z * (hx * dtx * dx + hy * dty * dy);
    const float weight_x = vxb * hx, weight_y = vyb * hy;  // of track a
    vertex.gx = vertex.txb + weight_x * dtx;
    vertex.gy = b.ty + weight_y * dty;
    vertex.x = xb + weight_x * dx + dz * vertex.gx;
    vertex.y = yb + weight_y * dy + dz * vertex.gy;
    vertex.z = z + dz;
    vertex.var_x = vxa * weight_x;
    vertex.var_y = vya * weight_y;
    const float rx = dx + dz * dtx, ry = dy + dz * dty;
    vertex.chi2 = hx * rx * rx + hy * ry * ry;
    return vertex;
}

/// A symmetric matrix of three rows.
struct symmetric3 {
    float c00, c10, c11, c20, c21, c22;
};

__device__ symmetric3 inverse_of(const symmetric3& m)
{
    const float a00 = m.c11 * m.c22 - m.c21 * m.c21;
    const float a10 = m.c20 * m.c21 - m.c10 * m.c22;
    const float a20 = m.c10 * m.c21 - m.c11 * m.c20;
    const float scale = 1.f / (m.c00 * a00 + m.c10 * a10 + m.c20 * a20);
    return {a00 * scale,
            a10 * scale,
            (m.c00 * m.c22 - m.c20 * m.c20) * scale,
            a20 * scale,
            (m.c10 * m.c20 - m.c00 * m.c21) * scale,
            (m.c00 * m.c11 - m.c10 * m.c10) * scale};
}

/// chi2 of the flight (dx, dy, dz) from a primary vertex of covariance `of_pv` to the vertex: d^T C^-1 d with the sum
/// of both covariances, whose inverse follows from that of B = of_pv + diag(var_x, var_y, 0) by one step (Sherman and
/// Morrison). d = dz g + e: the large terms from var_z g g^T cancel analytically.
__device__ float flight_chi2(const vertex_of_two& vertex, symmetric3 of_pv, float dx, float dy, float dz)
{
    of_pv.c00 += vertex.var_x;
    of_pv.c11 += vertex.var_y;
    const symmetric3 inverse = inverse_of(of_pv);
    const float ex = dx - dz * vertex.gx, ey = dy - dz * vertex.gy;
    const float qx = inverse.c00 * vertex.gx + inverse.c10 * vertex.gy + inverse.c20;
    const float qy = inverse.c10 * vertex.gx + inverse.c11 * vertex.gy + inverse.c21;
    const float qz = inverse.c20 * vertex.gx + inverse.c21 * vertex.gy + inverse.c22;
    const float s = vertex.gx * qx + vertex.gy * qy + qz;
    const float qe = qx * ex + qy * ey;
    const float across = inverse.c00 * ex * ex + 2.f * inverse.c10 * ex * ey + inverse.c11 * ey * ey;
    const float shrink = 1.f / (1.f + vertex.var_z * s);
    return across + (dz * (dz * s + 2.f * qe) - vertex.var_z * qe * qe) * shrink;
}

}  // namespace hlt
