// The impact parameter chi2 of a track to a primary vertex (docs/physics/impact-parameter.md).
#pragma once

#include "lhcb/primary_vertices/generated/pv_types.h"

namespace hlt {

/// dx, dy: track minus vertex at the z of the vertex; var_x, var_y: variances of the track there; tx, ty: its slopes.
__device__ float ip_chi2(const primary_vertex& pv, float dx, float dy, float tx, float ty, float var_x, float var_y)
{
    const float v00 = pv.c00 + var_x + tx * (tx * pv.c22 - 2.f * pv.c20);
    const float v11 = pv.c11 + var_y + ty * (ty * pv.c22 - 2.f * pv.c21);
    const float v10 = pv.c10 + tx * (ty * pv.c22 - pv.c21) - ty * pv.c20;
    return (v11 * dx * dx - 2.f * v10 * dx * dy + v00 * dy * dy) / (v00 * v11 - v10 * v10);
}

}  // namespace hlt
