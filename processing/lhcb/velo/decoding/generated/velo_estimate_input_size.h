// Written by tools/generate_device_headers.py from lhcb/velo/decoding/estimate_input_size.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"

struct velo_estimate_input_size_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* bound;
        uint32_t* super_pixel_bound;
    } velo_clusters;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
