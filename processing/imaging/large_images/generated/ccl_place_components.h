// Written by tools/generate_device_headers.py from imaging/large_images/place_components.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "imaging/components/generated/component_types.h"

struct ccl_place_components_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* root_count;
        uint32_t* first_component;
    } image_parts;
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

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
