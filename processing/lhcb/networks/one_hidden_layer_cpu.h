// The response of a network with one hidden layer on the CPU: tracks are the lanes of vector registers. Each lane makes
// the operations of the common function in their order, so that the bits are equal.
#pragma once

#include "framework/device/lanes.cuh"
#include "lhcb/networks/one_hidden_layer.cuh"

namespace hlt {

/// Vectors that the instruction set compares at once. Compilers unroll loops over a few tracks first, and then mix the
/// nodes in a register, so the lanes are written by hand.
using network_lanes = float __attribute__((vector_size(compares_eight_lanes ? 32 : 16)));

/// The responses, 0 to 1, to `inputs` of `width` tracks.
template <typename Network, uint32_t n_inputs, uint32_t width>
inline __attribute__((always_inline)) void network_responses(const Network& network,
                                                             const float (&inputs)[n_inputs][width], float (&u)[width])
{
    constexpr uint32_t n_hidden = sizeof(network.output) / sizeof(float);
    constexpr uint32_t n_lanes = sizeof(network_lanes) / sizeof(float);
    static_assert(width % n_lanes == 0);
    for (uint32_t group = 0; group < width; group += n_lanes) {
        network_lanes of_group[n_inputs];
        for (uint32_t number = 0; number < n_inputs; ++number) {
            std::memcpy(&of_group[number], &inputs[number][group], sizeof(network_lanes));
            of_group[number] = (of_group[number] - network.mean[number]) * network.inverse_spread[number];
        }
        network_lanes sum = network_lanes{} + network.output_bias;
        for (uint32_t node = 0; node < n_hidden; ++node) {
            network_lanes hidden = network_lanes{} + network.hidden_bias[node];
            for (uint32_t number = 0; number < n_inputs; ++number)
                hidden += of_group[number] * network.hidden[number][node];
            sum += (hidden < 0.f ? network_lanes{} : hidden) * network.output[node];
        }
        sum = 0.5f * (1.f + sum / square_root(1.f + sum * sum));
        std::memcpy(&u[group], &sum, sizeof sum);
    }
}

}  // namespace hlt
