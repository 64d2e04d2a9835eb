// Written by tools/generate_device_headers.py from mu3e/tracks/fit_triplets.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct mu3e_fit_triplets_parameters {
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
        const uint64_t* triplet;
        const uint32_t* count;
        const uint32_t* own;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } mu3e_triplets;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint64_t* fitted;
        uint32_t* count;
        uint32_t* own;
        __device__ uint32_t first(uint32_t event) const { return event * 512u; }
    } mu3e_tracks;
    float scattering;
    float hit_error;
    float mev_per_mm;
    float max_chi2;
    float min_momentum;
    float max_momentum;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
