// The response of a network with one hidden layer, and what its inputs have in common
// (docs/physics/ghost-probability.md).
#pragma once

#include "framework/device/math.cuh"
#include "framework/device/platform.cuh"

namespace hlt {

/// ln(1 + value), of values from 0 to 10,000; NaN counts as 0.
__device__ __forceinline__ float network_logarithm(float value)
{
    constexpr float largest = 1e4f;
    return logarithm(1.f + (value > 0.f ? min_of(value, largest) : 0.f));
}

/// ln(value), of values within limits; NaN counts as the lower one.
__device__ __forceinline__ float network_logarithm(float value, float least, float largest)
{
    return logarithm(value > least ? min_of(value, largest) : least);
}

__device__ __forceinline__ float network_size(float value) { return value < 0.f ? -value : value; }

/// The response, 0 to 1, to the inputs of one track.
template <typename Network, uint32_t n_inputs>
__device__ __forceinline__ float network_response(const Network& network, const float (&inputs)[n_inputs])
{
    constexpr uint32_t n_hidden = sizeof(network.output) / sizeof(float);
    float hidden[n_hidden];
    for (uint32_t node = 0; node < n_hidden; ++node) hidden[node] = network.hidden_bias[node];
    for (uint32_t i = 0; i < n_inputs; ++i) {
        const float input = (inputs[i] - network.mean[i]) * network.inverse_spread[i];
        for (uint32_t node = 0; node < n_hidden; ++node) hidden[node] += input * network.hidden[i][node];
    }
    float u = network.output_bias;
    for (uint32_t node = 0; node < n_hidden; ++node) u += max_of(hidden[node], 0.f) * network.output[node];
    return 0.5f * (1.f + u / sqrtf(1.f + u * u));
}

}  // namespace hlt
