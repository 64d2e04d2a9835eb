// Written by tools/generate_device_headers.py from na62/rich/search_rings.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "na62/rich/generated/rich_types.h"

struct rich_search_rings_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
        const float* x;
        const float* y;
        __device__ uint32_t first(uint32_t event) const { return event * 64u; }
    } rich_hits;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        hlt::rich_ring* ring;
        __device__ uint32_t first(uint32_t event) const { return event * 6u; }
    } rings;
    uint32_t triplets;
    uint32_t method;
    uint32_t max_skipped;
    float min_distance;
    float tolerance;
    float first_window;
    float window;
    uint32_t refits;
    uint32_t min_hits;
    float min_radius;
    float max_radius;
    float max_mean_square;
    float merge_distance;
    float resolution;
    float min_spread;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
