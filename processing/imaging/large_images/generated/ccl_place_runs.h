// Written by tools/generate_device_headers.py from imaging/large_images/place_runs.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct ccl_place_runs_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* run_count;
        uint32_t* first_run;
    } image_parts;
    struct {
        uint32_t* count;
    } runs;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
