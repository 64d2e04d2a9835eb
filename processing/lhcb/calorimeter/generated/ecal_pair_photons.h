// Written by tools/generate_device_headers.py from lhcb/calorimeter/pair_photons.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct ecal_pair_photons_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
        const float* x;
        const float* y;
        const float* energy;
        const float* et;
        const float* e19;
        __device__ uint32_t first(uint32_t event) const { return event * 1504u; }
    } ecal_clusters;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        uint16_t* clusters;
        float* mass;
        float* pt;
        float* eta;
        __device__ uint32_t first(uint32_t event) const { return event * 4096u; }
    } photon_pairs;
    float min_et;
    float min_e19;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
