// Written by tools/generate_device_headers.py from lhcb/raw_data/global_event_cut.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "framework/generated/raw_banks.h"

struct global_event_cut_parameters {
    const hlt::batch_header* batch;
    hlt::raw_banks raw_banks;
    struct {
        uint32_t* flags;
        uint32_t* ut_clusters;
        uint32_t* scifi_clusters;
    } events;
    uint32_t max_ut_clusters;
    uint32_t max_scifi_clusters;
    uint32_t max_clusters;
    uint32_t max_velo_clusters;
    uint32_t count_padding;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
