// Written by tools/generate_device_headers.py from imaging/components/place_images.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "imaging/images/generated/image_types.h"

struct ccl_place_images_parameters {
    const hlt::batch_header* batch;
    struct {
        const hlt::image_shape* shape;
    } images;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* offset;
        uint32_t* count;
    } image_rows;
    struct {
        uint32_t* offset;
        uint32_t* bound;
    } runs;
    struct {
        uint32_t* offset;
        uint32_t* bound;
    } components;
    uint32_t max_components;
    uint32_t max_pixels;
    uint32_t row_places;
    uint32_t run_places;
};
