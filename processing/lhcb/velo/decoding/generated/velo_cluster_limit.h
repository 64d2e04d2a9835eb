// Written by tools/generate_device_headers.py from lhcb/velo/decoding/cluster_limit.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct velo_cluster_limit_parameters {
    const hlt::batch_header* batch;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* bound;
    } velo_clusters;
    uint32_t max_clusters;
};
