// Written by tools/generate_device_headers.py from algorithms/copy_list.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct copy_list_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* offset;
    } list;
    struct {
        const uint32_t* offset;
        const uint32_t* words;
    } source;
    struct {
        uint32_t* words;
    } delivered;
    uint32_t element_bytes;
    uint32_t has_offset;
    uint32_t divisor;
    uint32_t per_event;
    uint32_t times;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
