// Slopes and curvatures of the ends of segments by bins, and whether they exclude a link.
#pragma once

#include "alice/tpc/merging/segments/near_segments.cuh"

namespace hlt {

/// The slope of an end without direction: it differs too much from any other.
constexpr float tpc_slope_of_no_end = 1e18f;

/// The ends of the segments of an event by bins; number 2 * place is an inner one, the next one the outer one.
struct tpc_near_ends {
    const float *slope, *curvature, *slope_variance, *curvature_variance;

    /// differs_too_much of an end and one of these.
    __device__ bool differs_too_much(const tpc_continuation& limits, const tpc_segment_end& a, uint32_t b,
                                     float max_chi2) const
    {
        return slopes_differ_too_much(limits, a, slope[b], slope_variance[b], max_chi2) ||
               curvatures_differ_too_much(limits, a, curvature[b], curvature_variance[b], max_chi2);
    }
};

template <typename Parameters>
__device__ tpc_near_ends near_ends_of(const Parameters& p, uint32_t first)
{
    return {p.tpc_tracks.near_slope + 2u * first, p.tpc_tracks.near_curvature + 2u * first,
            p.tpc_tracks.near_slope_variance + 2u * first, p.tpc_tracks.near_curvature_variance + 2u * first};
}

__device__ bool has_direction(const tpc_segment_end& end)
{
    return end.along_x * end.along_x + end.along_y * end.along_y > 0.f;
}

}  // namespace hlt
