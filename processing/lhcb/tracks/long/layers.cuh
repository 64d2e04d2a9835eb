// The layers of the SciFi tracker by their kind: 0, 3, 4, 7, 8 and 11 measure x, the others are tilted.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_scifi_stereo_layers = 6;

/// Layer of the k-th x layer.
__device__ uint32_t x_layer(uint32_t k) { return k / 2u * 4u + k % 2u * 3u; }

/// Layer of the k-th stereo layer.
__device__ uint32_t stereo_layer(uint32_t k) { return 4u * (k / 2u) + 1u + k % 2u; }

}  // namespace hlt
