// Written by tools/generate_device_headers.py from imaging/sparse_images/read_pixel_headers.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"
#include "imaging/images/generated/image_types.h"

struct ccl_read_pixel_headers_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        uint32_t* flags;
        uint32_t* number;
    } events;
    struct {
        hlt::image_shape* shape;
    } images;
    struct {
        uint32_t* total;
    } pixels;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
