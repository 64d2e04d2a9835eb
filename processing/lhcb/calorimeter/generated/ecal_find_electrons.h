// Written by tools/generate_device_headers.py from lhcb/calorimeter/find_electrons.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/calorimeter/generated/ecal_types.h"

struct ecal_find_electrons_parameters {
    const hlt::batch_header* batch;
    const hlt::ecal_geometry* ecal_geometry;
    struct {
        const int16_t* ecal_adc;
        uint32_t* electrons;
    } events;
    struct {
        const uint32_t* count;
        const uint16_t* velo_track;
        const float* qop;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        uint8_t* in_ecal;
        float* ecal_energy;
        float* eop;
        uint8_t* is_electron;
        float* brem_energy;
        float* brem_et;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* z;
        const float* tx;
        const float* ty;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_beamline;
    float min_eop;
    float min_brem_et;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
