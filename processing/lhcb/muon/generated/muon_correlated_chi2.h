// Written by tools/generate_device_headers.py from lhcb/muon/correlated_chi2.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct muon_correlated_chi2_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
        const float* qop;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        const uint16_t* muon_hits;
        uint8_t* is_muon;
        float* muon_chi2;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    struct {
        const uint32_t* offset;
        const float* x;
        const float* y;
        const float* z;
        const float* dx;
        const float* dy;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } muon_hits;
    float max_chi2;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
