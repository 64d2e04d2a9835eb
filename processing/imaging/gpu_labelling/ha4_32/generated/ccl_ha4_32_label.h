// Written by tools/generate_device_headers.py from imaging/gpu_labelling/ha4_32/ha4_32_label.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "imaging/images/generated/image_types.h"

struct ccl_ha4_32_label_parameters {
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
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } image_rows;
    struct {
        const uint32_t* offset;
        uint32_t* label;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } pixels;
    struct {
        uint32_t* threshold;
        uint32_t* strip_rows;
    } image_parts;
    uint32_t threshold;

    static constexpr uint32_t n_parts = 64u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
