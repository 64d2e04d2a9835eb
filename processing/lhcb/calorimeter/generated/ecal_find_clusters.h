// Written by tools/generate_device_headers.py from lhcb/calorimeter/find_clusters.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/calorimeter/generated/ecal_types.h"

struct ecal_find_clusters_parameters {
    const hlt::batch_header* batch;
    const hlt::ecal_geometry* ecal_geometry;
    struct {
        const int16_t* ecal_adc;
        const uint32_t* ecal_cells;
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        uint16_t* seed;
        float* x;
        float* y;
        float* energy;
        float* et;
        float* e19;
        __device__ uint32_t first(uint32_t event) const { return event * 1504u; }
    } ecal_clusters;
    uint32_t min_seed_adc;
    uint32_t min_neighbour_adc;
    uint32_t share;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
