// Written by tools/generate_device_headers.py from lhcb/tracks/kalman/ghost_network.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_ghost_inputs = 13;
constexpr uint32_t n_ghost_hidden = 16;

struct ghost_network {
    float mean[13];  // of each input
    float inverse_spread[13];  // 1 / standard deviation
    float hidden[13][16];  // weights of the inputs in each hidden node
    float hidden_bias[16];
    float output[16];  // weights of the hidden nodes
    float output_bias;
};
static_assert(sizeof(ghost_network) == 1068);

}  // namespace hlt
