// The bend of a track in the VELO by the fringe field of the dipole (docs/physics/long-kalman-filter.md).
//
// x'' = q/p (bend + gradient z): over dz from z the track leaves its tangent by q/p dz^2 ((bend + gradient z) / 2 +
// gradient dz / 6), and its slope changes by q/p dz (bend + gradient z + gradient dz / 2).
#pragma once

#include "lhcb/tracks/kalman/generated/kalman_types.h"

namespace hlt {

template <typename Real>
__device__ __forceinline__ Real bend_of_position(const velo_field& field, const Real& qop, float z, const Real& dz)
{
    return qop * dz * dz * (0.5f * (field.bend + field.gradient * z) + field.gradient * dz * (1.f / 6.f));
}

template <typename Real>
__device__ __forceinline__ Real bend_of_slope(const velo_field& field, const Real& qop, float z, const Real& dz)
{
    return qop * dz * (field.bend + field.gradient * (z + 0.5f * dz));
}

}  // namespace hlt
