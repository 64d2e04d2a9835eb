// Written by tools/generate_device_headers.py from lhcb/velo/decoding/hit_offsets.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct velo_hit_offsets_parameters {
    const hlt::batch_header* batch;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* bound;
        uint32_t* offset;
    } velo_clusters;
    uint32_t max_velo_clusters;
};
