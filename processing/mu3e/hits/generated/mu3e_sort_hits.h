// Written by tools/generate_device_headers.py from mu3e/hits/sort_hits.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "mu3e/geometry/generated/sensor_types.h"

struct mu3e_sort_hits_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        const hlt::mu3e_sensor* sensor;
    } mu3e;
    struct {
        uint32_t* flags;
        uint32_t* number;
    } events;
    struct {
        uint64_t* hit;
        float* x;
        float* y;
        float* z;
        uint32_t* count;
        uint32_t* own;
        uint32_t* group_begin;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } mu3e_hits;
    uint32_t length;
    uint32_t time_window;
    uint32_t hit_window;
    uint32_t recurl_window;
    uint32_t margin_before;
    uint32_t margin_behind;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
