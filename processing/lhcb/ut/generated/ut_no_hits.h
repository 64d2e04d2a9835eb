// Written by tools/generate_device_headers.py from lhcb/ut/no_hits.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct ut_no_hits_parameters {
    const hlt::batch_header* batch;
    struct {
        uint32_t* offset;
        uint32_t* count;
        float* x;
        float* z;
        float* y_begin;
        float* y_end;
        float* weight;
        uint32_t* id;
    } ut_hits;
};
