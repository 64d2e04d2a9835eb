// Written by tools/generate_device_headers.py from imaging/images/assemble_rows.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "imaging/images/generated/image_types.h"

struct ccl_assemble_rows_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        const hlt::image_shape* shape;
    } images;
    struct {
        const uint32_t* offset;
        const uint32_t* count;
        uint32_t* data;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } image_rows;
    struct {
        uint32_t* flags;
    } events;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
