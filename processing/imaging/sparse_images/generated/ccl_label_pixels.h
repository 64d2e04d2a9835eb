// Written by tools/generate_device_headers.py from imaging/sparse_images/label_pixels.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "imaging/components/generated/component_types.h"
#include "imaging/images/generated/image_types.h"

struct ccl_label_pixels_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        const hlt::image_shape* shape;
    } images;
    struct {
        const uint32_t* offset;
        const uint32_t* total;
        const uint32_t* count;
        uint32_t* position;
        uint32_t* label;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } pixels;
    struct {
        const uint32_t* offset;
        const uint32_t* bound;
        uint32_t* count;
        uint32_t* area;
        hlt::component_box* box;
        uint32_t* sum_x;
        uint32_t* sum_y;
        uint32_t* intensity;
        uint32_t* weighted_x;
        uint32_t* weighted_y;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } components;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
    } all_components;
    struct {
        const uint32_t* pixels_offset;
        uint64_t* keys;
        __device__ uint32_t first(uint32_t event) const { return pixels_offset[event]; }
    } scratch;
    uint32_t diagonal;
    uint32_t method;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
