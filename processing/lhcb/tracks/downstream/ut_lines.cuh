// Lines in the UT that continue a SciFi seed through the magnet, for one hit or for hits in the lanes of a vector.
//
// The field is that of `hltnode parametrise` (tracks/downstream/field.py): the plane of the kick, the changes of y and
// of its slope, and the kick over the momentum, all as functions of the kink and of the slopes in the UT.
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/tracks/downstream/generated/downstream_field_types.h"
#include "lhcb/tracks/long/bend.cuh"
#include "lhcb/tracks/long/generated/long_types.h"

namespace hlt {

/// A seed at z_scifi_reference.
struct downstream_seed {
    float x, tx, y, ty;

    template <typename Real>
    __device__ Real x_at(const Real& z) const
    {
        return x + tx * (z - z_scifi_reference);
    }
};

/// The line of a seed in the UT: mm and slopes at z_downstream_ut. `Real`: float, or a line in each lane of a vector.
template <typename Real>
struct downstream_line_of {
    Real x, tx, y, ty, kink;
};

using downstream_line = downstream_line_of<float>;

/// The functions of downstream_field at the ty of a seed.
struct downstream_functions {
    const downstream_field& field;
    float ty;

    __device__ float z_magnet(float tx, float kink) const { return at_slopes(field.z_magnet, tx, ty, false)(kink); }
    __device__ float y_slope(float tx, float kink) const { return at_slopes(field.y_slope, tx, ty, true)(kink); }
    __device__ float y_shift(float tx, float kink) const { return at_slopes(field.y_shift, tx, ty, true)(kink); }
};

template <typename Real>
__device__ Real squared(const Real& value)
{
    return value * value;
}

/// The line of a seed through a hit; x is not known yet, y and ty are those of the seed.
template <typename Functions, typename Real>
__device__ downstream_line_of<Real> line_through(const downstream_field& field, const Functions& functions,
                                                 const downstream_seed& seed, const Real& x, const Real& z)
{
    Real at = Real{} + field.z_magnet[0][0][0], tx{}, kink{};
    for (uint32_t step = 0; step < 2u; ++step) {
        if (step == 1u) at = functions.z_magnet(tx, kink);
        tx = (seed.x_at(at) - x) / (at - z);
        kink = seed.tx - tx;
    }
    return {Real{}, tx, Real{} + seed.y, Real{} + seed.ty, kink};
}

/// Change y and ty of a line to those in the UT.
template <typename Functions, typename Real>
__device__ void bend_in_y(const Functions& functions, const downstream_seed& seed, downstream_line_of<Real>& line)
{
    line.ty = seed.ty / (1.f + line.kink * functions.y_slope(line.tx, line.kink));
    line.y =
        seed.y + line.ty * (z_downstream_ut - z_scifi_reference - line.kink * functions.y_shift(line.tx, line.kink));
}

/// Charge over momentum (1/MeV) of a line with a kink.
__device__ float downstream_qop(const downstream_field& field, const downstream_line& line)
{
    const float ty_behind = line.ty * (1.f + line.kink * at_slopes(field.y_slope, line.tx, line.ty, true)(line.kink));
    const float change = sine_of(line.tx + line.kink, ty_behind) - sine_of(line.tx, line.ty);
    const float kick = at_slopes(field.kick, line.tx, line.ty, false)(line.kink);
    return field.polarity * change / kick;
}

}  // namespace hlt
