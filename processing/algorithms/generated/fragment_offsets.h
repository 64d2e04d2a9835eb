// Written by tools/generate_device_headers.py from algorithms/fragment_offsets.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct fragment_offsets_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint8_t* bytes;
        const hlt::mfp_row* mfp_rows;
    } input;
    struct {
        hlt::fragment_row* rows;
    } fragments;
};
