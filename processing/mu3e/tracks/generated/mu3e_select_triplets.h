// Written by tools/generate_device_headers.py from mu3e/tracks/select_triplets.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct mu3e_select_triplets_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint64_t* hit;
        const float* x;
        const float* y;
        const float* z;
        const uint32_t* group_begin;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } mu3e_hits;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint64_t* triplet;
        uint32_t* count;
        uint32_t* own;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } mu3e_triplets;
    uint32_t length;
    uint32_t time_window;
    uint32_t hit_window;
    uint32_t recurl_window;
    float max_xy01;
    float max_z01;
    float max_xy12;
    float max_z12;
    float max_z_residual;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
