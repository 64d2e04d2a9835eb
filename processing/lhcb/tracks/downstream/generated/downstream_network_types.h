// Written by tools/generate_device_headers.py from lhcb/tracks/downstream/ghost_network.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_downstream_inputs = 12;

struct downstream_network {
    float mean[12];  // of each input
    float inverse_spread[12];  // 1 / standard deviation
    float hidden[12][16];  // weights of the inputs in each hidden node
    float hidden_bias[16];
    float output[16];  // weights of the hidden nodes
    float output_bias;
};
static_assert(sizeof(downstream_network) == 996);

}  // namespace hlt
