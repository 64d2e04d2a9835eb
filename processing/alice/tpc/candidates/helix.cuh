// A merged track as a helix in the global frame.
#pragma once

#include "alice/tpc/merging/segments/segment_end.cuh"

namespace hlt {

/// A place on the track, its direction there (of length 1), its curvature in 1/cm (positive ones turn to the left).
struct tpc_helix {
    float x, y, z, along_x, along_y, curvature, slope;
};

/// `numbers`: those of tpc.geometry behind the rows.
__device__ tpc_helix helix_of(const tpc_merged_track& track, const float* numbers)
{
    tpc_filter filter{};
    filter.b0 = numbers[1];
    filter.z2 = numbers[2];
    filter.z4 = numbers[3];
    const tpc_direction axis = axis_of_slice(track.slice);
    const tpc_direction at = turned({track.x, track.y}, axis);
    const tpc_direction along = turned({square_root(1.f - track.sin_phi * track.sin_phi), track.sin_phi}, axis);
    return {at.x,
            at.y,
            track.z,
            along.x,
            along.y,
            curvature_of_unit(filter, track.x, track.y, track.z) * track.q_pt,
            track.tan_lambda};
}

/// Direction of the track at its closest place to the beam line, not of length 1.
__device__ tpc_direction direction_at_beam(const tpc_helix& helix)
{
    return {helix.curvature * helix.y + helix.along_x, helix.along_y - helix.curvature * helix.x};
}

}  // namespace hlt
