// Written by tools/generate_device_headers.py from alice/tpc/merging/links/sort_free_ends.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_sort_free_ends_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* events_first_cluster;
        const uint32_t* count;
        const hlt::tpc_segment_end* inner;
        const hlt::tpc_segment_end* outer;
        const uint32_t* longer;
        const uint32_t* shorter;
        const uint32_t* best_end;
        hlt::tpc_free_end* free_end;
        uint32_t* free_number;
        uint32_t* cell_begins;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_tracks;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
