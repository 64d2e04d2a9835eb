// Written by tools/generate_device_headers.py from lhcb/calorimeter/measure_showers.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/calorimeter/generated/ecal_types.h"

struct ecal_measure_showers_parameters {
    const hlt::batch_header* batch;
    const hlt::ecal_geometry* ecal_geometry;
    struct {
        const int16_t* ecal_adc;
    } events;
    struct {
        const uint32_t* count;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        uint16_t* ecal_cell;
        float* shower_energy;
        float* shower_dx;
        float* shower_dy;
        float* shower_spread_x;
        float* shower_spread_y;
        float* shower_peak;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
