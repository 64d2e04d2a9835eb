// Written by tools/generate_device_headers.py from algorithms/list_offsets.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct list_offsets_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
        uint32_t* offset;
    } list;
    struct {
        uint32_t* flags;
    } events;
    uint32_t left_out;
    uint32_t capacity;
};
