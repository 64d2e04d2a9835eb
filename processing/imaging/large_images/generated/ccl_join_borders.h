// Written by tools/generate_device_headers.py from imaging/large_images/join_borders.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "imaging/components/generated/component_types.h"

struct ccl_join_borders_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* offset;
        const uint32_t* count;
        const hlt::row_runs* runs;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } image_rows;
    struct {
        const uint32_t* offset;
        const hlt::image_run* span;
        uint32_t* parent;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } runs;
    struct {
        const uint32_t* reach;
    } image_parts;

    static constexpr uint32_t n_parts = 8u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
