// Operations for code on one number or on the lanes of a vector (vector8.cuh, wide_lanes.h), besides arithmetic,
// comparisons and `condition ? a : b`.
#pragma once

#include "framework/device/vector8.cuh"

namespace hlt {

/// Square root of each lane.
template <typename Lanes>
__device__ __forceinline__ Lanes square_root(const Lanes& lanes)
{
#if HLT_ON_GPU
    return sqrtf(lanes);
#else
    float roots[sizeof lanes / sizeof(float)];
    std::memcpy(roots, &lanes, sizeof lanes);
    for (float& root : roots) root = sqrtf(root);
    Lanes found;
    std::memcpy(&found, roots, sizeof found);
    return found;
#endif
}

/// One value in all lanes.
template <typename Lanes, typename Value>
__device__ Lanes in_all_lanes(Value value)
{
    return Lanes{} + value;
}

template <typename Lanes>
__device__ Lanes absolute(const Lanes& lanes)
{
    return lanes < 0.f ? -lanes : lanes;
}

}  // namespace hlt
