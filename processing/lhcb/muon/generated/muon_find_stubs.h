// Written by tools/generate_device_headers.py from lhcb/muon/find_stubs.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct muon_find_stubs_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* offset;
        const uint16_t* station_offset;
        const float* x;
        const float* y;
        const float* z;
        const float* dx;
        const float* dy;
        const uint32_t* tile;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } muon_hits;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        uint16_t* hits;
        float* x;
        float* y;
        float* tx;
        float* ty;
        float* chi2_x;
        float* chi2_y;
        __device__ uint32_t first(uint32_t event) const { return event * 256u; }
    } muon_stubs;
    struct {
        const uint32_t* muon_hits_offset;
        uint16_t* stub_hits;
        uint32_t* stub_chi2;
        uint32_t* least_chi2;
        uint32_t* first_seed;
        __device__ uint32_t first(uint32_t event) const { return muon_hits_offset[event]; }
    } scratch;
    float half_width_x;
    float half_width_x_m4;
    float half_width_y;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
