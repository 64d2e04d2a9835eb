// Written by tools/generate_device_headers.py from lhcb/secondary_vertices/pair_v0s.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct secondary_vertices_pair_v0s_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
        const uint16_t* tracks;
        const uint8_t* kind;
        const float* x;
        const float* y;
        const float* z;
        const float* px;
        const float* py;
        const float* pz;
        __device__ uint32_t first(uint32_t event) const { return event * 512u; }
    } two_track_vertices;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        uint16_t* vertices;
        float* mass;
        float* doca;
        __device__ uint32_t first(uint32_t event) const { return event * 256u; }
    } v0_pairs;
    float max_doca;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
