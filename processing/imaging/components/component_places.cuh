// Places of the components of each event.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

/// The threads of a block give each event places for n components.
__device__ void place_components(uint32_t n_events, uint32_t n, uint32_t* bound, uint32_t* offset)
{
    for (uint32_t event = threadIdx.x; event < n_events; event += blockDim.x) {
        bound[event] = n;
        offset[event] = event * n;
    }
    if (threadIdx.x == 0) offset[n_events] = n_events * n;
}

}  // namespace hlt
