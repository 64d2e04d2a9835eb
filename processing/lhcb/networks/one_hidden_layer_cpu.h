// The response of a network with one hidden layer on the CPU: tracks are the lanes of vector registers. Each lane makes
// the operations of the common function in their order, so that the bits are equal.
#pragma once

#include "lhcb/networks/one_hidden_layer.cuh"

namespace hlt {

/// The responses, 0 to 1, to `inputs` of `width` tracks.
template <typename Network, uint32_t n_inputs, uint32_t width>
inline __attribute__((always_inline)) void network_responses(const Network& network, float (&inputs)[n_inputs][width],
                                                             float (&u)[width])
{
    constexpr uint32_t n_hidden = sizeof(network.output) / sizeof(float);
    for (uint32_t number = 0; number < n_inputs; ++number)
        for (uint32_t i = 0; i < width; ++i)
            inputs[number][i] = (inputs[number][i] - network.mean[number]) * network.inverse_spread[number];

    for (uint32_t i = 0; i < width; ++i) u[i] = network.output_bias;
    for (uint32_t node = 0; node < n_hidden; ++node) {
        float hidden[width];
        for (uint32_t i = 0; i < width; ++i) hidden[i] = network.hidden_bias[node];
        for (uint32_t number = 0; number < n_inputs; ++number)
            for (uint32_t i = 0; i < width; ++i) hidden[i] += inputs[number][i] * network.hidden[number][node];
        for (uint32_t i = 0; i < width; ++i) u[i] += max_of(hidden[i], 0.f) * network.output[node];
    }
    for (uint32_t i = 0; i < width; ++i) u[i] = 0.5f * (1.f + u[i] / sqrtf(1.f + u[i] * u[i]));
}

}  // namespace hlt
