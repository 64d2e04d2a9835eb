// Written by tools/generate_device_headers.py from alice/tpc/clusters/place_clusters.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/generated/tpc_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_place_clusters_parameters {
    const hlt::batch_header* batch;
    struct {
        const hlt::tpc_slice_input* input;
        uint32_t* first_cluster;
    } tpc_slices;
    struct {
        uint32_t* first_cluster;
    } events;
};
