// The beam line: a straight line in the LHCb frame (docs/physics/primary-vertices.md, beam line).
//
// Without a slope, position + 0 z is the position, bit by bit, for each finite z.
#pragma once

#include "framework/device/platform.cuh"
#include "lhcb/velo/generated/velo_types.h"

namespace hlt {

// `Real`: float for one track, or a vector of floats with one track in each lane.

struct velo_beam_line {
    float x, y;              // mm, at z = 0
    float slope_x, slope_y;  // dx/dz, dy/dz

    __device__ explicit velo_beam_line(const velo_geometry& geometry)
        : x(geometry.beamline_x),
          y(geometry.beamline_y),
          slope_x(geometry.beamline_slope_x),
          slope_y(geometry.beamline_slope_y)
    {
    }

    template <typename Real>
    __device__ Real x_at(const Real& z) const
    {
        return x + slope_x * z;
    }

    template <typename Real>
    __device__ Real y_at(const Real& z) const
    {
        return y + slope_y * z;
    }

    /// The distance in z from a point of a track with slopes tx and ty to its closest approach, where the distance at
    /// the same z is smallest; 0 for a track parallel to the beam line.
    template <typename Real>
    __device__ Real dz_to_closest(const Real& track_x, const Real& track_y, const Real& z, const Real& tx,
                                  const Real& ty) const
    {
        const Real from_beam_x = tx - slope_x, from_beam_y = ty - slope_y, none{};
        const Real slope2 = from_beam_x * from_beam_x + from_beam_y * from_beam_y;
        const Real towards = from_beam_x * (x_at(z) - track_x) + from_beam_y * (y_at(z) - track_y);
        return slope2 > 0.f ? towards / slope2 : none;
    }
};

}  // namespace hlt
