// Written by tools/generate_device_headers.py from na62/rich/fit_ring.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "na62/rich/generated/rich_types.h"

struct rich_fit_ring_parameters {
    const hlt::batch_header* batch;
    struct {
        const hlt::mfp_row* mfp_rows;
    } input;
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
    uint32_t method;
    float resolution;
    float min_spread;
};
