// Whether a short segment lies on the helix of another one, by place instead of chi2.
#pragma once

#include "alice/tpc/merging/segments/segment_end.cuh"

namespace hlt {

/// cm of the way from an end to both ends of a piece.
constexpr float tpc_piece_reach = 60.f;
/// Cosine of the largest angle between a helix and a piece.
constexpr float tpc_piece_cosine = 0.5f;

/// How far both ends of a piece may be from a helix, in cm, and its slope from that of the helix.
struct tpc_piece_limits {
    float distance, z, slope, overlap;  // overlap: cm back along the way
};

/// A place beside a helix: sum of the squares of its distances in units of the limits, and the way to it in cm;
/// distance2 is tpc_no_continuation if it is beyond one, or if the way has another direction there.
struct tpc_place_on_way {
    float distance2, gap;
};

/// Where end `b` is on the way out of `a`. into: -1 if the way leads into the segment of b there, 1 if it leads out.
__device__ tpc_place_on_way place_on_way(const tpc_piece_limits& limits, const tpc_segment_end& a,
                                         const tpc_segment_end& b, float into)
{
    constexpr tpc_place_on_way none{tpc_no_continuation, 0.f};
    const float k = a.curvature, dx = b.x - a.x, dy = b.y - a.y;
    const float t = dx * a.along_x + dy * a.along_y, w = dy * a.along_x - dx * a.along_y;
    const float p = k * t, q = 1.f - k * w, m = square_root(p * p + q * q);
    if (!(m > 0.1f)) return none;
    const float ex = (a.along_x * q - a.along_y * p) / m, ey = (a.along_y * q + a.along_x * p) / m;
    if (!(into * (ex * b.along_x + ey * b.along_y) > tpc_piece_cosine)) return none;
    const float gap = angle_at(q, p) / k;
    if (!(gap > -limits.overlap && gap < tpc_piece_reach)) return none;
    if (!(square(a.slope - into * b.slope) < square(limits.slope))) return none;
    const float distance = (2.f * w - k * (t * t + w * w)) / ((1.f + m) * limits.distance);
    const float z = (b.z - a.z - gap * a.slope) / limits.z;
    if (!(square(distance) < 1.f && square(z) < 1.f)) return none;
    return {square(distance) + square(z), gap};
}

}  // namespace hlt
