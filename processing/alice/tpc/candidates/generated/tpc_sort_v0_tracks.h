// Written by tools/generate_device_headers.py from alice/tpc/candidates/sort_v0_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_sort_v0_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* events_first_cluster;
        const uint32_t* count;
        const uint16_t* v0_bin;
        uint32_t* v0_bin_begins;
        uint32_t* v0_partners;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_merged_tracks;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
