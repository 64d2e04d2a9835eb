// Written by tools/generate_device_headers.py from imaging/components/find_runs.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "imaging/components/generated/component_types.h"
#include "imaging/images/generated/image_types.h"

struct ccl_find_runs_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint8_t* bytes;
    } input;
    struct {
        const hlt::image_shape* shape;
    } images;
    struct {
        const uint32_t* offset;
        const uint32_t* count;
        const uint32_t* data;
        hlt::row_runs* runs;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } image_rows;
    struct {
        const uint32_t* offset;
        uint32_t* count;
        hlt::image_run* span;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } runs;
    uint32_t threshold;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
