// Written by tools/generate_device_headers.py from imaging/cpu_labelling/label_image.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "imaging/components/generated/component_types.h"
#include "imaging/images/generated/image_types.h"

struct ccl_label_image_parameters {
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
        const uint32_t* bound;
        uint32_t* count;
    } components;
    struct {
        uint32_t* flags;
    } events;
    struct {
        const uint32_t* offset;
        uint32_t* count;
        hlt::image_run* span;
        uint32_t* label;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } runs;
    struct {
        uint32_t* count;
    } all_components;
    struct {
        const uint32_t* runs_offset;
        uint32_t* labels;
        __device__ uint32_t first(uint32_t event) const { return runs_offset[event] * 2u; }
    } pixels_scratch;
    struct {
        const uint32_t* runs_offset;
        uint32_t* parents;
        __device__ uint32_t first(uint32_t event) const { return runs_offset[event]; }
    } runs_scratch;
    uint32_t threshold;
    uint32_t method;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
