// The primary vertex of a line of flight (docs/physics/secondary-vertices.md).
#pragma once

#include "lhcb/primary_vertices/generated/pv_types.h"
#include "lhcb/secondary_vertices/vertex_fit.cuh"
#include "lhcb/velo/generated/velo_types.h"

namespace hlt {

/// The primary vertex to which a line of flight comes closest, and its distance there in mm; no_pv and 0 without one.
struct flight_origin {
    uint32_t pv;
    float ip;
};

__device__ flight_origin origin_of(const primary_vertex* pvs, uint32_t n_pvs, const vertex_of_two& vertex, float sx,
                                   float sy)
{
    uint32_t nearest = no_pv;
    float smallest = 0.f;
    for (uint32_t i = 0; i < n_pvs; ++i) {
        const float dz = pvs[i].z - vertex.z;
        const float dx = vertex.x + dz * sx - pvs[i].x;
        const float dy = vertex.y + dz * sy - pvs[i].y;
        const float distance2 = dx * dx + dy * dy;
        if (nearest == no_pv || distance2 < smallest) {
            nearest = i;
            smallest = distance2;
        }
    }
    return {nearest, sqrtf(smallest / (1.f + sx * sx + sy * sy))};
}

}  // namespace hlt
