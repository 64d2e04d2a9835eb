// Written by tools/generate_device_headers.py from lhcb/calorimeter/identify_electrons.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/calorimeter/generated/electron_network_types.h"

struct ecal_identify_electrons_parameters {
    const hlt::batch_header* batch;
    const hlt::electron_network* electron_network;
    struct {
        const uint32_t* count;
        const float* qop;
        const float* eop;
        const float* brem_energy;
        const uint16_t* ecal_cell;
        const float* shower_energy;
        const float* shower_dx;
        const float* shower_dy;
        const float* shower_spread_x;
        const float* shower_spread_y;
        const float* shower_peak;
        float* electron_nn;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    uint32_t weights;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
