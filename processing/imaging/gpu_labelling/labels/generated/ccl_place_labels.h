// Written by tools/generate_device_headers.py from imaging/gpu_labelling/labels/place_labels.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "imaging/images/generated/image_types.h"

struct ccl_place_labels_parameters {
    const hlt::batch_header* batch;
    struct {
        const hlt::image_shape* shape;
    } images;
    struct {
        const uint32_t* count;
    } image_rows;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* offset;
        uint32_t* bound;
    } pixels;
    struct {
        uint32_t* offset;
        uint32_t* bound;
    } label_chunks;
    uint32_t pixel_places;
    uint32_t chunk_places;
};
