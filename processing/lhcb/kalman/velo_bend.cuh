// How the fringe field of the dipole bends a track in the VELO (docs/physics/long-kalman-filter.md).
//
// x'' = q/p (bend + gradient z): over dz from z the track leaves its tangent by q/p dz^2 ((bend + gradient z) / 2 +
// gradient dz / 6), and its slope changes by q/p dz (bend + gradient z + gradient dz / 2).
#pragma once

#include "lhcb/kalman/generated/kalman_types.h"

namespace hlt {

__device__ float bend_of_position(const velo_field& field, float qop, float z, float dz)
{
    return qop * dz * dz * (0.5f * (field.bend + field.gradient * z) + field.gradient * dz * (1.f / 6.f));
}

__device__ float bend_of_slope(const velo_field& field, float qop, float z, float dz)
{
    return qop * dz * (field.bend + field.gradient * (z + 0.5f * dz));
}

}  // namespace hlt
