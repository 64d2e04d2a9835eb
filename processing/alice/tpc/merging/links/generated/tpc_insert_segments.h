// Written by tools/generate_device_headers.py from alice/tpc/merging/links/insert_segments.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_insert_segments_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* events_first_cluster;
        const uint32_t* count;
        const hlt::tpc_segment_end* inner;
        const hlt::tpc_segment_end* outer;
        const uint32_t* longer;
        const uint32_t* shorter;
        const hlt::tpc_free_end* free_end;
        const uint32_t* cell_begins;
        uint32_t* best_end;
        uint32_t* insertion;
        uint32_t* insertion_key;
        uint32_t* claimed_key;
        uint32_t* claimed_by;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_tracks;
    struct {
        uint32_t* flags;
    } events;
    float piece_distance;
    float piece_z;
    float piece_slope;
    float max_overlap;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
