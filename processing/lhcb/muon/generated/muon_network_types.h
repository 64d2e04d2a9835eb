// Written by tools/generate_device_headers.py from lhcb/muon/muon_network.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

constexpr uint32_t n_muon_inputs = 19;
constexpr uint32_t n_muon_hidden = 16;
constexpr uint32_t first_muon_residual = 12;
constexpr uint32_t first_muon_crossed = 8;
constexpr float max_muon_residual = 30.0f;

struct muon_network {
    float mean[19];  // of each input
    float inverse_spread[19];  // 1 / standard deviation
    float hidden[19][16];  // weights of the inputs in each hidden node
    float hidden_bias[16];
    float output[16];  // weights of the hidden nodes
    float output_bias;
};
static_assert(sizeof(muon_network) == 1500);

}  // namespace hlt
