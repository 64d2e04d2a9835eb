// Slopes and curvatures of a segment, and whether they exclude that another one continues it.
#pragma once

#include "alice/tpc/merging/segment_end.cuh"

namespace hlt {

/// The ranges of both ends; an outer end without direction does not count.
__device__ tpc_segment_key key_of(const tpc_segment_end& inner, const tpc_segment_end& outer, uint32_t segment)
{
    const auto size_of = [](float value) { return value < 0.f ? -value : value; };
    const float slope = size_of(inner.slope), bend = size_of(inner.curvature);
    if (!(outer.along_x * outer.along_x + outer.along_y * outer.along_y > 0.f))
        return {slope, slope, inner.ll, bend, bend, inner.kk, segment};
    const float other_slope = size_of(outer.slope), other_bend = size_of(outer.curvature);
    return {min_of(slope, other_slope),
            max_of(slope, other_slope),
            max_of(inner.ll, outer.ll),
            min_of(bend, other_bend),
            max_of(bend, other_bend),
            max_of(inner.kk, outer.kk),
            segment};
}

/// Whether no end of one segment continues an end of the other one: the differences of the sizes of slopes or of
/// curvatures, which are the smallest ones of any signs, make chi2 larger than a limit. As differs_too_much, it allows
/// for rounding.
__device__ bool keys_exclude(const tpc_continuation& limits, const tpc_segment_key& a, const tpc_segment_key& b,
                             float max_chi2)
{
    constexpr float above_rounding = 1.0001f;
    const float limit = max_chi2 * above_rounding;
    const float slope = max_of(max_of(a.least_slope - b.most_slope, b.least_slope - a.most_slope), 0.f);
    const float bend = max_of(max_of(a.least_bend - b.most_bend, b.least_bend - a.most_bend), 0.f);
    return slope * slope > limit * (a.ll + b.ll + square(limits.slope)) ||
           bend * bend > limit * (a.kk + b.kk + square(limits.curvature * a.most_bend));
}

}  // namespace hlt
