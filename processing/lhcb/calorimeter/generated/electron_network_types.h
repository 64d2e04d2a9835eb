// Written by tools/generate_device_headers.py from lhcb/calorimeter/electron_network.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_electron_inputs = 10;
constexpr uint32_t n_electron_hidden = 16;
constexpr float max_shower_distance = 3.0f;

struct electron_network {
    float mean[10];  // of each input
    float inverse_spread[10];  // 1 / standard deviation
    float hidden[10][16];  // weights of the inputs in each hidden node
    float hidden_bias[16];
    float output[16];  // weights of the hidden nodes
    float output_bias;
};
static_assert(sizeof(electron_network) == 852);

}  // namespace hlt
