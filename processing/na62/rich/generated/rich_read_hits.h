// Written by tools/generate_device_headers.py from na62/rich/read_hits.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"

struct rich_read_hits_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        const float* pmt_position;
    } rich;
    struct {
        uint32_t* flags;
        uint32_t* number;
    } events;
    struct {
        uint32_t* count;
        float* x;
        float* y;
        uint8_t* time;
        __device__ uint32_t first(uint32_t event) const { return event * 64u; }
    } rich_hits;
    struct {
        uint32_t* count;
    } rings;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
