// Written by tools/generate_device_headers.py from alice/tpc/merging/segments/sort_segments.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_sort_segments_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* events_first_cluster;
        const uint32_t* count;
        const uint16_t* bin;
        const hlt::tpc_segment_end* inner;
        const hlt::tpc_segment_end* outer;
        uint32_t* bin_begins;
        uint32_t* sorted;
        float* near_slope;
        float* near_curvature;
        float* near_slope_variance;
        float* near_curvature_variance;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_tracks;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
