// Written by tools/generate_device_headers.py from lhcb/tracks/matching/seed_in_y.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/matching/generated/seeding_types.h"

struct matching_seed_in_y_parameters {
    const hlt::batch_header* batch;
    const hlt::seeding_tables* seeding_tables;
    struct {
        const uint32_t* scifi_hits_offset;
        const float* x;
        const uint16_t* bins;
        const uint32_t* cells;
        const uint16_t* hit;
        __device__ uint32_t first(uint32_t event) const { return scifi_hits_offset[event]; }
    } seeding_hits;
    struct {
        const uint32_t* count;
        const float* a;
        const float* b;
        const float* c;
        const uint8_t* hit_count;
        const uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } x_seeds;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        float* x;
        float* y;
        float* tx;
        float* ty;
        float* curvature;
        float* quality;
        uint8_t* hit_count;
        uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } scifi_seeds;
    float max_line_chi2;
    float missing_hit_penalty;
    float max_chi2;
    uint32_t min_hits;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
